/**
 * Normalisation rules as compiled by SentencePiece (`precompiled_charsmap`): a double array over UTF-8 bytes (Darts-clone's) that maps a sequence of
 * characters to an offset in a list of texts. Bits of a unit: 0 to 7 and 31 label, 8 has a leaf, 9 scales the offset, 10 to 30 offset; a leaf has its
 * value in bits 0 to 30.
 */
import type { Refuse } from './wire.js'

/** Rules by prefix of a text. */
export interface Charsmap {
  /** Rules that match the bytes at a position, the shortest first: matched bytes, and their replacement. */
  rulesAt(bytes: Uint8Array, at: number): readonly Rule[]
}

export interface Rule {
  readonly bytes: number
  readonly text: Uint8Array
}

const unitBytes = 4
const labelBits = 0x800000ff
const valueBits = 0x7fffffff

/**
 * Reads compiled rules.
 * @throws the error made by `refuse`, for invalid bytes
 */
export function charsmapOf(blob: Uint8Array, refuse: Refuse): Charsmap {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const size = blob.length >= unitBytes ? view.getUint32(0, true) : Number.NaN
  if (!(size % unitBytes === 0 && size > 0 && unitBytes + size <= blob.length)) {
    throw refuse('has rules of normalisation (precompiled_charsmap) that are damaged')
  }
  const texts = blob.subarray(unitBytes + size)
  // A damaged rule that leads outside of the array ends at a unit without successors.
  const unit = (at: number): number => (at * unitBytes < size ? view.getUint32(unitBytes * (at + 1), true) : 0)
  const offset = (value: number): number => (value >>> 10) << ((value & 0x200) >>> 6)
  return {
    rulesAt(bytes, at) {
      const rules: Rule[] = []
      let node = offset(unit(0))
      for (let i = at; i < bytes.length; i++) {
        const byte = bytes[i] ?? 0
        node ^= byte
        const found = unit(node)
        // The zero at the end of a text does not belong to a rule.
        if (byte === 0 || (found & labelBits) >>> 0 !== byte) break
        node ^= offset(found)
        if ((found & 0x100) !== 0) rules.push({ bytes: i + 1 - at, text: textAt(texts, unit(node) & valueBits) })
      }
      return rules
    },
  }
}

/** Text at an offset of the list, up to its terminating zero. */
function textAt(texts: Uint8Array, from: number): Uint8Array {
  const end = texts.indexOf(0, from)
  return texts.subarray(from, end < 0 ? texts.length : end)
}
