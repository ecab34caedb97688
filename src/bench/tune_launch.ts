/** Buffers and launches of one kernel at one size, for `heddle tune`: one small set to compare results, many large sets to time. */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { dtypeInfo, dtypes } from '../ir/dtype.js'
import { findLayout, type Layouts, layoutSize } from '../runtime/layouts.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeBuffer, NativeDevice, NativeSlice, NativeStep } from '../runtime/native.js'
import { encodeNumbers } from '../runtime/numbers.js'
import { poisonByte } from '../verify/block.js'
import type { OpRule } from '../verify/op_rule.js'
import { integer, normal, type Random, random } from '../verify/random.js'
import { ruleOf } from '../verify/rules.js'
import type { TuneKernel } from './tune_plan.js'

/** Sizes of a launch, by dimension. */
export type Dims = Readonly<Record<string, number>>

/** Device, kernels and layouts of launches. */
export interface Stage {
  readonly device: NativeDevice
  readonly library: KernelSource
  /** Layouts by name; row layouts need no entry. */
  readonly layouts: Layouts
}

const alignment = 256
/** Number of random values; a larger input repeats them. */
const drawn = 1 << 14
/** Largest extents of the inner dimensions: a sequence, and the heads that share it. */
const innerExtents = [128, 16]

/** Heads of attention, and the total rows of all sequences, as in a layer of a typical model. */
const heads = 12
const sequenceRows = 4096

/** Size of a launch: number and length of rows, and the depth of a matmul. For attention, rows are those of a sequence. */
export interface Size {
  readonly rows: number
  readonly length: number
  readonly depth?: number | undefined
}

/** Constraints of a launch in addition to its size. */
export const ruleFor = ({ kind }: TuneKernel, { rows }: Size, entry: KernelEntry): OpRule =>
  ruleOf(entry, kind === 'attention' ? { rows } : 'ragged')

/** Extents of a launch: for rows, small inner dimensions and the rest in the outermost one. */
export function dimsOf(kernel: TuneKernel, size: Size, entry: KernelEntry): Dims {
  const { outer, row, depth } = kernel
  const given: Dims = {
    ...Object.fromEntries(entry.dims.map((name) => [name, 1])),
    [row]: size.length,
    ...(depth === undefined || size.depth === undefined ? {} : { [depth]: size.depth }),
    ...(kernel.kind === 'attention' ? sequenceExtents(outer, size.rows) : rowExtents(outer, size.rows)),
  }
  return ruleFor(kernel, size, entry).extents(given)
}

const sequenceExtents = ([batch = '', head = '']: readonly string[], rows: number): Dims => ({
  [batch]: Math.max(1, Math.floor(sequenceRows / rows)),
  [head]: heads,
})

function rowExtents(outer: readonly string[], rows: number): Dims {
  let rest = rows
  const inner = outer
    .slice(1)
    .reverse()
    .map((name, i): [string, number] => {
      let extent = innerExtents[i] ?? 1
      while (rest % extent !== 0) extent /= 2
      rest /= extent
      return [name, extent]
    })
  const sized: Dims = Object.fromEntries(inner)
  return outer[0] === undefined ? sized : { ...sized, [outer[0]]: rest }
}

interface Place {
  readonly buffer: KernelEntry['buffers'][number]
  readonly elements: number
  readonly offset: number
  readonly bytes: number
}

function placesOf(layouts: Layouts, entry: KernelEntry, dims: Dims): { places: Place[]; bytes: number } {
  let end = 0
  const known = new Map<string, Place>()
  const places = entry.buffers.map((buffer): Place => {
    // An output that updates an input shares its memory.
    const before = known.get(buffer.updates ?? '')
    if (before !== undefined) return { ...before, buffer }
    const shape = buffer.dims.map((name) => dims[name] ?? 1)
    const elements = layoutSize(findLayout(layouts, buffer.layout, shape.length), shape)
    const bytes = elements * dtypeInfo[buffer.dtype].bytes
    const offset = end
    end = Math.ceil((offset + bytes) / alignment) * alignment
    const place = { buffer, elements, offset, bytes }
    known.set(buffer.name, place)
    return place
  })
  return { places, bytes: end }
}

/** Bytes that a launch reads and writes, with one access per buffer. */
export const bytesOf = (layouts: Layouts, entry: KernelEntry, dims: Dims): number =>
  placesOf(layouts, entry, dims).places.reduce((sum, { bytes }) => sum + bytes, 0)

/** Inverse scale of int8 results: values up to about 4 cover the range. */
const usualInverse = 32
/** Largest magnitude of integers, chosen to keep results of their sums within 16 bits. */
const widest = 8

const drawValue = (dtype: KernelEntry['buffers'][number]['dtype'], next: Random): number =>
  dtype === 'i8' ? integer(next, -widest, widest) : normal(next)

/** Initial memory: encoded inputs and poisoned outputs. */
function initialBlock(entry: KernelEntry, rule: OpRule, places: readonly Place[], bytes: number, dims: Dims): Uint8Array {
  const block = new Uint8Array(bytes)
  for (const { buffer, elements, offset, bytes: size } of places) {
    const target = block.subarray(offset, offset + size)
    if (buffer.updates !== undefined) continue
    if (buffer.access === 'out') {
      target.fill(poisonByte(buffer.dtype))
      continue
    }
    const special = rule.inputs[buffer.name]
    const next = random(`tune ${entry.op} ${buffer.name}`)
    const value = (): number => drawValue(buffer.dtype, next)
    const shape = buffer.dims.map((name) => dims[name] ?? 1)
    const values =
      special?.({ next, value, dims, shape }) ?? Float64Array.from({ length: Math.min(elements, drawn) }, () => value())
    const pattern = encodeNumbers(buffer.dtype, values)
    for (let at = 0; at < size; at += pattern.byteLength) target.set(pattern.subarray(0, size - at), at)
  }
  return block
}

/** One problem size of a kernel, with `sets` copies of its buffers to defeat caching. */
export interface Launches {
  /** Launches of the kernel `key`, one per set. */
  steps(key: string): NativeStep[]
  /** Library matmuls, one per set, for a kernel with the arguments a, b, result, m, n and k. */
  products(): NativeStep[]
  readonly outputs: readonly { readonly buffer: KernelEntry['buffers'][number]; readonly slice: NativeSlice }[]
  /** First set before any launch. */
  readonly initial: { readonly to: NativeSlice; readonly data: Uint8Array }
  release(): void
}

/** @param entry of any kernel with the same arguments @throws environment `device.memory` */
export async function openLaunches(stage: Stage, entry: KernelEntry, rule: OpRule, dims: Dims, sets: number): Promise<Launches> {
  const { device, library, layouts } = stage
  const { places, bytes } = placesOf(layouts, entry, dims)
  const buffers: NativeBuffer[] = []
  const release = (): void => {
    for (const buffer of buffers) buffer.release()
  }
  try {
    for (let set = 0; set < sets; set++) buffers.push(device.allocate(bytes))
    const whole = (buffer: NativeBuffer): NativeSlice => ({ buffer, offset: 0, bytes })
    const [first, ...others] = buffers
    if (first === undefined) throw new Error('internal: launches need a set of buffers')
    const data = initialBlock(entry, rule, places, bytes, dims)
    await first.write(0, data)
    if (others.length > 0)
      await once(
        device,
        others.map((to) => ({ kind: 'copy', label: 'copy', from: whole(first), to: whole(to) })),
      )
    const sized = rule.attrs(dims)
    const attrs = entry.attrs.map((attr) =>
      rule.fills[attr.name] === undefined ? (sized[attr.name] ?? attr.default) : usualInverse,
    )
    return {
      steps: (key) =>
        buffers.map((buffer) => ({
          kind: 'kernel',
          label: key,
          library: library.of(key),
          key,
          buffers: places.map((place) => ({ buffer, offset: place.offset, bytes: place.bytes })),
          dims: entry.dims.map((name) => dims[name] ?? 1),
          attrs,
        })),
      products: () => buffers.map((buffer) => productStep(entry, places, dims, buffer)),
      outputs: places
        .filter(({ buffer }) => buffer.access === 'out')
        .map((place) => ({ buffer: place.buffer, slice: { buffer: first, offset: place.offset, bytes: place.bytes } })),
      initial: { to: whole(first), data },
      release,
    }
  } catch (error) {
    release()
    throw error
  }
}

function productStep(entry: KernelEntry, places: readonly Place[], dims: Dims, buffer: NativeBuffer): NativeStep {
  const slice = (i: number): NativeSlice => ({ buffer, offset: places[i]?.offset ?? 0, bytes: places[i]?.bytes ?? 0 })
  const dtype = (i: number): number => dtypes.indexOf(places[i]?.buffer.dtype ?? 'f32')
  const [m = 1, n = 1, k = 1] = entry.dims.map((name) => dims[name] ?? 1)
  return {
    kind: 'matmul',
    label: 'library',
    a: slice(0),
    b: slice(1),
    out: slice(2),
    dtypes: [dtype(0), dtype(1), dtype(2)],
    allowTf32: false,
    extents: [1, m, n, k],
    strides: [
      [m * k, k, 1],
      [n * k, k, 1],
      [m * n, n, 1],
    ],
  }
}

async function once(device: NativeDevice, steps: readonly NativeStep[]): Promise<void> {
  const program = device.program(steps)
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}
