/** Bit casts between floats and integers, for `bitsOf` and `floatOfBits`. The functions of native/device/scalars.cuh return the same bits. */

const float = new Float32Array(1)
const word = new Int32Array(float.buffer)

/** The bits of JavaScript's NaN. */
export const bitsOfNaN = 0x7fc00000

/** The bits of a number rounded to float32, as a signed integer. */
export function bitsOf(value: number): number {
  if (Number.isNaN(value)) return bitsOfNaN
  float[0] = value
  return word[0] ?? 0
}

/** The float32 of an integer's low 32 bits. */
export function floatOfBits(bits: number): number {
  word[0] = bits
  return float[0] ?? Number.NaN
}
