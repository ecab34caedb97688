/**
 * Conversion between float32 and the 8-bit floats of the OCP specification (OFP8). e4m3 has no infinity, NaN at 0x7f and 0xff, and 448 as its
 * largest number; e5m2 is binary16 without its lower byte. Rounding is to nearest, ties to even. Values out of range, infinities too,
 * saturate to the largest number, and every NaN becomes 0x7f, as in native/device/float8.cuh and the conversion instructions of GPUs.
 * (PyTorch's casts turn values out of range into NaN, or infinities for e5m2; within range they agree.)
 */

export interface Float8 {
  /** Code of float32 bits. */
  round(bits: number): number
  /** Exact float32 value of each code. */
  readonly values: Float32Array
}

function float8(mantissa: number, bias: number, largest: number, noNumber: (magnitude: number) => boolean): Float8 {
  const dropped = 23 - mantissa
  const leastNormal = (128 - bias) << 23
  /** Spacing of subnormals. */
  const step = 2 ** (1 - bias - mantissa)
  const values = Float32Array.from({ length: 256 }, (_, code) => {
    const magnitude = code & 0x7f
    const exponent = magnitude >> mantissa
    const fraction = magnitude & ((1 << mantissa) - 1)
    const value = exponent === 0 ? fraction * step : ((1 << mantissa) + fraction) * step * 2 ** (exponent - 1)
    if (noNumber(magnitude)) return Number.NaN
    const found = magnitude > largest ? Number.POSITIVE_INFINITY : value
    return code < 0x80 ? found : -found
  })
  const single = new Float32Array(1)
  const word = new Uint32Array(single.buffer)
  const magnitudeCode = (magnitude: number): number => {
    if (magnitude >= leastNormal) {
      const odd = (magnitude >>> dropped) & 1
      return Math.min((magnitude - ((127 - bias) << 23) + (1 << (dropped - 1)) - 1 + odd) >>> dropped, largest)
    }
    // From 2^23 steps on, the spacing of floats is one step, so that the addition rounds.
    word[0] = magnitude
    single[0] = (single[0] ?? 0) + step * 2 ** 23
    return (word[0] ?? 0) & 0xff
  }
  return {
    values,
    round(bits) {
      const magnitude = bits & 0x7fffffff
      return magnitude > 0x7f800000 ? 0x7f : ((bits >>> 24) & 0x80) | magnitudeCode(magnitude)
    },
  }
}

export const f8e4m3Codes = float8(3, 7, 0x7e, (magnitude) => magnitude === 0x7f)
export const f8e5m2Codes = float8(2, 15, 0x7b, (magnitude) => magnitude > 0x7c)
