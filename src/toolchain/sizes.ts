/** Bytes that compiled kernels add to a library: the loaded sections of their objects. For `heddle build --sizes`. */
import { readFile } from 'node:fs/promises'
import { findingError } from '../errors.js'
import type { BuiltObject } from './objects.js'

export interface KernelSize {
  /** Sources of the object: of one op in a full build. */
  readonly sources: readonly string[]
  /** Bytes that a library with it has more. */
  readonly bytes: number
  /** Those among them for GPUs, of all architectures. */
  readonly gpuBytes: number
}

/** Constants of ELF: the machine code of GPUs is in two sections of an object. */
const elf = { magic: 0x464c457f, sectionsAt: 0x28, countsAt: 0x3a, noBits: 8, loaded: 2 }
const gpuSections = new Set(['.nv_fatbin', '__nv_relfatbin'])

/** Sizes of an object in bytes. @throws if the bytes are no object of a 64-bit machine */
export function objectSize(object: Uint8Array): Pick<KernelSize, 'bytes' | 'gpuBytes'> {
  const file = new DataView(object.buffer, object.byteOffset, object.byteLength)
  if (object.byteLength < 64 || file.getUint32(0, true) !== elf.magic) throw new Error('internal: not an object')
  const start = Number(file.getBigUint64(elf.sectionsAt, true))
  const [step = 0, count = 0, names = 0] = [0, 2, 4].map((offset) => file.getUint16(elf.countsAt + offset, true))
  const number = (section: number, offset: number): number => Number(file.getBigUint64(start + section * step + offset, true))
  const texts = number(names, 24)
  const nameOf = (section: number): string => {
    const at = texts + file.getUint32(start + section * step, true)
    return new TextDecoder().decode(object.subarray(at, object.indexOf(0, at)))
  }
  let [bytes, gpuBytes] = [0, 0]
  for (let section = 0; section < count; section += 1) {
    const type = file.getUint32(start + section * step + 4, true)
    if (type === elf.noBits || (number(section, 8) & elf.loaded) === 0) continue
    bytes += number(section, 32)
    if (gpuSections.has(nameOf(section))) gpuBytes += number(section, 32)
  }
  return { bytes, gpuBytes }
}

/** Sizes of objects, the largest first. */
export async function sizesOf(objects: readonly Pick<BuiltObject, 'source' | 'object' | 'op'>[]): Promise<readonly KernelSize[]> {
  const sources = new Map<string, string[]>()
  for (const { source, object, op } of objects)
    if (op !== undefined) sources.set(object, [...(sources.get(object) ?? []), source])
  const sizes = [...sources].map(async ([object, of]) => ({ sources: of.sort(), ...objectSize(await readFile(object)) }))
  return (await Promise.all(sizes)).sort((a, b) => b.bytes - a.bytes)
}

/** @throws finding `build.size` with every object above the limit */
export function refuseLarge(sizes: readonly KernelSize[], limitBytes: number): void {
  const large = sizes.filter(({ bytes }) => bytes > limitBytes)
  if (large.length === 0) return
  const lines = large.map(({ sources, bytes }) => `${sources.join(', ')}: expected at most ${limitBytes} bytes, got ${bytes}`)
  throw findingError('build.size', lines.join('\n'), {
    hint: 'build fewer architectures, storage types or sizes, or raise --limit-kb',
  })
}
