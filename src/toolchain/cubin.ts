/**
 * Parser of cubins, the machine code of nvcc: an ELF file with one section of instructions and one of attributes per kernel.
 * Parsed here, since the tools that print them are not part of every toolkit.
 */

/** Constants of ELF for CUDA. */
const elf = { magic: 0x464c457f, machineAt: 0x12, cuda: 190, sectionsAt: 0x28, countsAt: 0x3a }

/** Attributes of a kernel: a byte for the form, a byte for the name, and two bytes; in form 4 these are the number of payload bytes that follow. */
const attributes = { sized: 4, mostThreads: 0x05 }

/** Section type without data in the file (SHT_NOBITS). */
const noBits = 8

export interface Section {
  readonly name: string
  /** Bytes of the section; empty if it has no data in the file. */
  readonly data: DataView
}

/** Sections of a cubin, in file order. @throws if the bytes are not a cubin */
export function sectionsOf(cubin: Uint8Array): Section[] {
  const file = new DataView(cubin.buffer, cubin.byteOffset, cubin.byteLength)
  if (cubin.byteLength < 64 || file.getUint32(0, true) !== elf.magic || file.getUint16(elf.machineAt, true) !== elf.cuda) {
    throw new Error('internal: not a cubin')
  }
  const start = Number(file.getBigUint64(elf.sectionsAt, true))
  const [size, count, names] = [0, 2, 4].map((offset) => file.getUint16(elf.countsAt + offset, true))
  const section = (i: number) => {
    const at = start + i * (size ?? 0)
    const isEmpty = file.getUint32(at + 4, true) === noBits
    return {
      name: file.getUint32(at, true),
      offset: Number(file.getBigUint64(at + 24, true)),
      bytes: isEmpty ? 0 : Number(file.getBigUint64(at + 32, true)),
    }
  }
  const text = section(names ?? 0).offset
  const nameAt = (at: number): string => new TextDecoder().decode(cubin.subarray(at, cubin.indexOf(0, at)))
  return Array.from({ length: count ?? 0 }, (_, i) => section(i)).map(({ name, offset, bytes }) => ({
    name: nameAt(text + name),
    data: bytes === 0 ? new DataView(new ArrayBuffer(0)) : new DataView(file.buffer, file.byteOffset + offset, bytes),
  }))
}

/** Maximum threads per block of each kernel, by symbol: its `__launch_bounds__`. @throws if the bytes are not a cubin */
export function threadsOf(cubin: Uint8Array): ReadonlyMap<string, number> {
  const prefix = '.nv.info.'
  const found = new Map<string, number>()
  for (const { name, data } of sectionsOf(cubin)) {
    if (!name.startsWith(prefix)) continue
    for (let at = 0; at + 4 <= data.byteLength; ) {
      const [form, attribute, bytes] = [data.getUint8(at), data.getUint8(at + 1), data.getUint16(at + 2, true)]
      const isSized = form === attributes.sized
      if (isSized && attribute === attributes.mostThreads) {
        const extents = [0, 4, 8].map((offset) => data.getUint32(at + 4 + offset, true))
        found.set(
          name.slice(prefix.length),
          extents.reduce((product, extent) => product * extent, 1),
        )
      }
      at += 4 + (isSized ? bytes : 0)
    }
  }
  return found
}
