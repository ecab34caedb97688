/**
 * 16-bit and 8-bit floats on the host. Node 20 has no typed array for them, so tensors hold their bits in a Uint16Array or a Uint8Array, and
 * these turn numbers into bits and back. Every rounding is to nearest, ties to even, and done once.
 */
import { decode, encode } from '../buffer.js'

/** A 16-bit float type between numbers and bits. */
export interface HalfType {
  /** The bits of numbers, each rounded to nearest; what is too large becomes infinite. */
  from(numbers: ArrayLike<number>): Uint16Array
  /** The numbers that bits stand for, exactly. */
  toNumbers(bits: Uint16Array): Float32Array
}

/**
 * Numbers in float32 so that rounding these again to 16 or 8 bits rounds the numbers once: the neighbour towards zero, with the last bit set
 * where it is not the number itself ("round to odd"). float32 has more than two bits more than either type, which makes that exact.
 */
function towardsOdd(numbers: ArrayLike<number>): Float32Array {
  const floats = new Float32Array(numbers.length)
  const bits = new Uint32Array(floats.buffer)
  for (let i = 0; i < floats.length; i++) {
    const exact = numbers[i] ?? Number.NaN
    floats[i] = exact
    const rounded = floats[i] ?? Number.NaN
    if (rounded === exact || Number.isNaN(exact)) continue
    const found = bits[i] ?? 0
    bits[i] = Math.abs(rounded) > Math.abs(exact) ? (found - 1) | 1 : found | 1
  }
  return floats
}

const halfType = (dtype: 'f16' | 'bf16'): HalfType => ({
  from(numbers) {
    const bytes = encode(dtype, numbers instanceof Float32Array ? numbers : towardsOdd(numbers))
    return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)
  },
  toNumbers: (bits) => decode(dtype, new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength)),
})

/** IEEE 754 binary16. */
export const f16 = halfType('f16')

/** An 8-bit float type between numbers and codes. */
export interface Float8Type {
  /** The codes of numbers, each rounded to nearest; what is too large becomes the largest number of the type. */
  from(numbers: ArrayLike<number>): Uint8Array
  /** The numbers that codes stand for, exactly. */
  toNumbers(codes: Uint8Array): Float32Array
}

const float8Type = (dtype: 'f8e4m3' | 'f8e5m2'): Float8Type => ({
  from: (numbers) => encode(dtype, numbers instanceof Float32Array ? numbers : towardsOdd(numbers)),
  toNumbers: (codes) => decode(dtype, codes),
})

/** OFP8 with 3 bits of mantissa, up to 448; no infinity. */
export const f8e4m3 = float8Type('f8e4m3')

/** OFP8 with 2 bits of mantissa, up to 57344: binary16 without its lower byte. */
export const f8e5m2 = float8Type('f8e5m2')

/** bfloat16: the upper half of a float32. */
export const bf16 = halfType('bf16')
