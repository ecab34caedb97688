/**
 * 16-bit and 8-bit floats on the host. Node 20 has no typed array for them, so tensors hold their bits in a Uint16Array or a Uint8Array, and
 * these types convert between numbers and bits. Numbers are rounded once, to nearest, ties to even.
 */
import { decode, encode } from '../buffer.js'

/** Conversions of a 16-bit float type. */
export interface HalfType {
  /** Converts numbers to bits, rounded to nearest; numbers out of range become infinite. */
  from(numbers: ArrayLike<number>): Uint16Array
  /** Converts bits to numbers, exactly. */
  toNumbers(bits: Uint16Array): Float32Array
}

/**
 * Rounds doubles to float32 so that a second rounding to 16 or 8 bits gives the result of a single one ("round to odd"): towards zero, with the
 * last bit set if the result is inexact. float32 has more than two bits more than either type, which makes that exact.
 */
function roundToOdd(numbers: ArrayLike<number>): Float32Array {
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
    const bytes = encode(dtype, numbers instanceof Float32Array ? numbers : roundToOdd(numbers))
    return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)
  },
  toNumbers: (bits) => decode(dtype, new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength)),
})

/** IEEE 754 binary16. */
export const f16 = halfType('f16')

/** Conversions of an 8-bit float type. */
export interface Float8Type {
  /** Converts numbers to codes, rounded to nearest; numbers out of range saturate to the largest number of the type. */
  from(numbers: ArrayLike<number>): Uint8Array
  /** Converts codes to numbers, exactly. */
  toNumbers(codes: Uint8Array): Float32Array
}

const float8Type = (dtype: 'f8e4m3' | 'f8e5m2'): Float8Type => ({
  from: (numbers) => encode(dtype, numbers instanceof Float32Array ? numbers : roundToOdd(numbers)),
  toNumbers: (codes) => decode(dtype, codes),
})

/** OFP8 with 3 bits of mantissa, up to 448; no infinity. */
export const f8e4m3 = float8Type('f8e4m3')

/** OFP8 with 2 bits of mantissa, up to 57344: binary16 without its lower byte. */
export const f8e5m2 = float8Type('f8e5m2')

/** bfloat16: the upper half of a float32. */
export const bf16 = halfType('bf16')
