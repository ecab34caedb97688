/**
 * `Precompiled` normalisers of a `tokenizer.json` (T5, Pegasus, XLM-R and others that were SentencePiece models), by the rules in the file; the
 * library uses fixed rules instead. Rules are applied as in Hugging Face's tokenizers (spm_precompiled): to a whole grapheme of less than six bytes,
 * else to each character. If several rules match, the shortest is used.
 */
import { charsmapOf } from './sentencepiece/charsmap.js'

const mostBytes = 6
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Normalisers of the library, by the fields of each kind. */
interface Precompiled {
  readonly charsmap: unknown
  normalize(text: string): string
}
interface Several {
  readonly normalizers: readonly unknown[]
}
const isPrecompiled = (value: unknown): value is Precompiled => typeof value === 'function' && 'charsmap' in value
const areSeveral = (value: unknown): value is Several =>
  typeof value === 'function' && 'normalizers' in value && Array.isArray(value.normalizers)

/** Replaces the library's fixed rules by those of the file. @throws an error for damaged rules */
export function followRules(normaliser: unknown): void {
  if (areSeveral(normaliser)) for (const each of normaliser.normalizers) followRules(each)
  if (!isPrecompiled(normaliser)) return
  const { charsmap } = normaliser
  const compiled = Buffer.from(typeof charsmap === 'string' ? charsmap : '', 'base64')
  const rules = compiled.length === 0 ? undefined : charsmapOf(compiled, (what) => new Error(what))
  const ruleFor = (part: string): string | undefined => {
    const found = rules?.rulesAt(encoder.encode(part), 0)[0]
    return found === undefined ? undefined : decoder.decode(found.text)
  }
  const replaced = (grapheme: string): string => {
    const whole = Buffer.byteLength(grapheme) < mostBytes ? ruleFor(grapheme) : undefined
    return whole ?? [...grapheme].map((letter) => ruleFor(letter) ?? letter).join('')
  }
  normaliser.normalize = (text: string): string =>
    Array.from(graphemes.segment(text), ({ segment }) => replaced(segment)).join('')
}
