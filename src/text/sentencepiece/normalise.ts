/**
 * Normalises texts as SentencePiece does before splitting them: rules replace characters, the longest rule first. Blanks become `▁`, with one in
 * front and, if the model states so, none doubled or at the ends. The order is that of normalizer.cc, since rules may produce blanks.
 */
import type { PieceModel } from './model.js'

export const blank = '▁'

const space = 0x20
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const blankBytes = encoder.encode(blank)

/** Bytes of a UTF-8 character from its first byte. */
const widthOf = (first: number): number => (first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4)

/**
 * A function that normalises texts.
 * @param own user-defined symbols, which stay unchanged
 */
export function normaliserOf(
  model: Pick<PieceModel, 'charsmap' | 'fewerBlanks'>,
  own: readonly string[],
): (text: string, blankInFront: boolean) => string {
  const symbols = own.map((symbol) => encoder.encode(symbol)).sort((a, b) => b.length - a.length)
  const { charsmap, fewerBlanks } = model
  /** Replacement of the bytes from `at` on, and their number. */
  const prefix = (bytes: Uint8Array, at: number): { readonly text: Uint8Array; readonly bytes: number } => {
    const symbol = symbols.find((each) => each.every((byte, i) => bytes[at + i] === byte))
    if (symbol !== undefined) return { text: symbol, bytes: symbol.length }
    const width = widthOf(bytes[at] ?? 0)
    return charsmap?.rulesAt(bytes, at).at(-1) ?? { text: bytes.subarray(at, at + width), bytes: width }
  }
  return (text, blankInFront) => {
    const bytes = encoder.encode(text)
    const out: number[] = []
    let at = 0
    for (let each = prefix(bytes, at); fewerBlanks && at < bytes.length; each = prefix(bytes, at)) {
      if (each.text.length !== 1 || each.text[0] !== space) break
      at += each.bytes
    }
    if (at === bytes.length) return ''
    if (blankInFront) out.push(...blankBytes)
    let afterBlank = fewerBlanks
    while (at < bytes.length) {
      const each = prefix(bytes, at)
      let from = 0
      while (afterBlank && each.text[from] === space) from++
      for (const byte of each.text.subarray(from)) {
        if (byte === space) out.push(...blankBytes)
        else out.push(byte)
      }
      if (from < each.text.length) afterBlank = fewerBlanks && each.text.at(-1) === space
      at += each.bytes
    }
    const whole = decoder.decode(Uint8Array.from(out))
    return fewerBlanks ? whole.replace(/▁+$/, '') : whole
  }
}
