/**
 * Blocks of quantised GGUF tensors converted to floats. Layouts are those of llama.cpp (ggml/src/ggml-common.h and the `dequantize_row_*` of
 * ggml-quants.c): scales in float16, integers of 4 to 8 bits. Every value is computed exactly and rounded once, to float32; only types with an offset
 * need that rounding.
 */
import { decode } from '../runtime/buffer.js'

/** A block to convert: the file's bytes, the position of its first byte, and its float16 numbers. */
export interface Block {
  readonly bytes: Uint8Array
  readonly from: number
  readonly scale: number
  readonly offset: number
}

/** Writes the values of a block, starting at an index. */
type Unpack = (block: Block, values: Float32Array, to: number) => void

export interface BlockType {
  /** Values per block. */
  readonly values: number
  /** Bytes per block. */
  readonly bytes: number
  /** Offsets of its scale and, if it has one, of its minimum. */
  readonly halves: readonly [number, number?]
  readonly unpack: Unpack
}

const small = 32
const large = 256
const signed = (byte = 0): number => (byte << 24) >> 24

/**
 * Integers of 4 or 5 bits. A byte holds a value of the block's first half in its low bits, and one of the second half in its high bits. The fifth bit
 * of value i is bit i of the four preceding bytes.
 * @param zero integer that represents 0
 */
const ofHalves =
  ({ first, fifths, zero }: { readonly first: number; readonly fifths?: number; readonly zero: number }): Unpack =>
  ({ bytes, from, scale, offset }, values, to) => {
    for (let i = 0; i < small; i++) {
      const nibble = ((bytes[from + first + (i & 15)] ?? 0) >> (i < 16 ? 0 : 4)) & 15
      const fifth = fifths === undefined ? 0 : (((bytes[from + fifths + (i >> 3)] ?? 0) >> (i & 7)) & 1) << 4
      values[to + i] = scale * ((nibble | fifth) - zero) + offset
    }
  }

const ofBytes: Unpack = ({ bytes, from, scale }, values, to) => {
  for (let i = 0; i < small; i++) values[to + i] = scale * signed(bytes[from + 2 + i])
}

/**
 * Factors of the scale and of the offset for one of eight groups of 32 values, six bits each in twelve bytes. For the first four groups they are the
 * low bits of bytes 0 to 3 and 4 to 7. For the others they are four bits of bytes 8 to 11, below the high two bits of those.
 */
function factorsOf(bytes: Uint8Array, from: number, group: number): readonly [number, number] {
  const at = (i: number): number => bytes[from + i] ?? 0
  if (group < 4) return [at(group) & 63, at(group + 4) & 63]
  const top = (byte: number): number => (byte >> 6) << 4
  return [(at(group + 4) & 15) | top(at(group - 4)), (at(group + 4) >> 4) | top(at(group))]
}

/** Eight groups of 4 or 5 bits. Two groups share 32 bytes. The fifth bit of a value of group g is bit g of the 32 preceding bytes. */
const ofGroups =
  ({ first, fifths }: { readonly first: number; readonly fifths?: number }): Unpack =>
  ({ bytes, from, scale, offset }, values, to) => {
    for (let group = 0; group < 8; group++) {
      const [factor, minimum] = factorsOf(bytes, from + 4, group)
      const [step, least] = [scale * factor, offset * minimum]
      const [begin, shift] = [from + first + 32 * (group >> 1), 4 * (group & 1)]
      for (let i = 0; i < 32; i++) {
        const fifth = fifths === undefined ? 0 : (((bytes[from + fifths + i] ?? 0) >> group) & 1) << 4
        values[to + 32 * group + i] = step * ((((bytes[begin + i] ?? 0) >> shift) & 15) | fifth) - least
      }
    }
  }

/**
 * Sixteen groups of 6 bits. Each half of the block has its low four bits in 64 bytes, whose first 32 values are the low bits of the first 32 bytes.
 * The high two bits are in 32 bytes, four values to a byte. Factors of the scale are signed bytes.
 */
const ofSixBits: Unpack = ({ bytes, from, scale }, values, to) => {
  for (let i = 0; i < large; i++) {
    const [half, quarter, at] = [i >> 7, (i >> 5) & 3, i & 31]
    const nibble = ((bytes[from + 64 * half + 32 * (quarter & 1) + at] ?? 0) >> (quarter < 2 ? 0 : 4)) & 15
    const top = (((bytes[from + 128 + 32 * half + at] ?? 0) >> (2 * quarter)) & 3) << 4
    values[to + i] = scale * signed(bytes[from + 192 + (i >> 4)]) * ((nibble | top) - 32)
  }
}

export const blockTypes = {
  Q4_0: { values: small, bytes: 18, halves: [0], unpack: ofHalves({ first: 2, zero: 8 }) },
  Q4_1: { values: small, bytes: 20, halves: [0, 2], unpack: ofHalves({ first: 4, zero: 0 }) },
  Q5_0: { values: small, bytes: 22, halves: [0], unpack: ofHalves({ fifths: 2, first: 6, zero: 16 }) },
  Q5_1: { values: small, bytes: 24, halves: [0, 2], unpack: ofHalves({ fifths: 4, first: 8, zero: 0 }) },
  Q8_0: { values: small, bytes: 34, halves: [0], unpack: ofBytes },
  Q4_K: { values: large, bytes: 144, halves: [0, 2], unpack: ofGroups({ first: 16 }) },
  Q5_K: { values: large, bytes: 176, halves: [0, 2], unpack: ofGroups({ fifths: 16, first: 48 }) },
  Q6_K: { values: large, bytes: 210, halves: [208], unpack: ofSixBits },
} as const satisfies Readonly<Record<string, BlockType>>

/** Converts all blocks to float32. */
export function fromBlocks({ values: each, bytes: size, halves, unpack }: BlockType, bytes: Uint8Array): Uint8Array {
  const blocks = bytes.byteLength / size
  const values = new Float32Array(blocks * each)
  const [scales, offsets] = halves.map((place) => halvesAt(bytes, size, place ?? 0))
  for (let block = 0; block < blocks; block++) {
    unpack({ bytes, from: block * size, scale: scales?.[block] ?? 0, offset: offsets?.[block] ?? 0 }, values, block * each)
  }
  return new Uint8Array(values.buffer)
}

/** The float16 at one offset of each block. */
function halvesAt(bytes: Uint8Array, size: number, place: number): Float32Array {
  const blocks = bytes.byteLength / size
  const taken = new Uint8Array(2 * blocks)
  for (let block = 0; block < blocks; block++) {
    taken[2 * block] = bytes[block * size + place] ?? 0
    taken[2 * block + 1] = bytes[block * size + place + 1] ?? 0
  }
  return decode('f16', taken)
}
