/**
 * Detects non-finite values at memory speed, since every byte of a checkpoint is scanned. In each float type a value is infinite or NaN exactly if
 * all bits of its exponent are set. Adding one to the lowest bit of the exponent field then carries into the sign.
 */

interface Field {
  /** Exponent bits of one float32, or of two packed 16-bit floats. */
  readonly mask: number
  /** Lowest exponent bit of each. */
  readonly one: number
  /** Bit that receives the carry of each. */
  readonly carry: number
}

const fields = {
  f32: { mask: 0x7f80_0000, one: 0x0080_0000, carry: 0x8000_0000 },
  bf16: { mask: 0x7f80_7f80, one: 0x0080_0080, carry: 0x8000_8000 },
  f16: { mask: 0x7c00_7c00, one: 0x0400_0400, carry: 0x8000_8000 },
} as const satisfies Readonly<Record<string, Field>>

/**
 * True if the bytes of float values hold an infinity or a NaN.
 * @param bytes whole elements, at an offset that is a multiple of four bytes in their buffer
 */
export function holdsNonFinite(dtype: keyof typeof fields, bytes: Uint8Array): boolean {
  const { mask, one, carry } = fields[dtype]
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 2)
  // Sums stay 32-bit integers, and four independent accumulators keep the loop as fast as its loads.
  let [carries, second, third, fourth] = [0, 0, 0, 0]
  for (let i = 0; i < words.length; i += 4) {
    carries |= (((words[i] ?? 0) & mask) + one) | 0
    second |= (((words[i + 1] ?? 0) & mask) + one) | 0
    third |= (((words[i + 2] ?? 0) & mask) + one) | 0
    fourth |= (((words[i + 3] ?? 0) & mask) + one) | 0
  }
  // One 16-bit value may remain.
  const rest = bytes.byteLength & 3
  if (rest !== 0) {
    const last = bytes.byteLength - rest
    carries |= (((bytes[last] ?? 0) | ((bytes[last + 1] ?? 0) << 8)) & mask) + one
  }
  return ((carries | second | third | fourth) & carry) !== 0
}
