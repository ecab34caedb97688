/**
 * Added tokens with `single_word` in `tokenizer.json`: next to a letter, a digit or an underscore they are not tokens but ordinary text
 * (added_vocabulary.rs of Hugging Face's tokenizers). The library here treats them as tokens there too. Texts with such a place are therefore encoded
 * by a tokenizer without the token.
 */
import { z } from 'zod'

const definitionSchema = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ content: z.string(), single_word: z.boolean().optional(), normalized: z.boolean().optional() }))
    .default([]),
})

export interface SingleWord {
  readonly content: string
  /** True if the token is normalised, and searched for in normalised text. */
  readonly normalized: boolean
}

/** Added tokens of a parsed `tokenizer.json` that have `single_word`. */
export function singleWords(definition: object): readonly SingleWord[] {
  const file = definitionSchema.safeParse(definition)
  if (!file.success) return []
  return file.data.added_tokens.flatMap(({ content, single_word: single, normalized = false }) =>
    single === true ? [{ content, normalized }] : [],
  )
}

/** The definition without some of its added tokens. */
export function withoutTokens(definition: object, contents: readonly string[]): object {
  const { added_tokens: added } = definition as { readonly added_tokens?: readonly { readonly content: string }[] }
  return { ...definition, added_tokens: added?.filter(({ content }) => !contents.includes(content)) }
}

/** Word characters, as in Rust's regular expressions. */
const letter = String.raw`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]`
const endsInWord = new RegExp(`${letter}$`, 'u')
const beginsInWord = new RegExp(`^${letter}`, 'u')
/** Code units of the widest character. */
const widest = 2

/**
 * Contents of the tokens that occur in texts inside of words.
 * @throws an error for a token that also occurs as a word of its own
 */
export function insideWords(texts: readonly string[], words: readonly SingleWord[], normal: (text: string) => string): string[] {
  return words.flatMap(({ content, normalized }) => {
    const form = normalized ? normal : (text: string): string => text
    const inside = texts.flatMap((text) => placesOf(form(text), form(content)))
    if (!inside.includes(true)) return []
    if (!inside.includes(false)) return [content]
    throw new Error(`a text that has ${JSON.stringify(content)}, a single_word, inside of a word and as a word of its own`)
  })
}

/** Flag for each occurrence of a word: true if it is inside of another word. */
function placesOf(text: string, word: string): boolean[] {
  const places: boolean[] = []
  if (word === '') return places
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
    const end = at + word.length
    places.push(endsInWord.test(text.slice(Math.max(0, at - widest), at)) || beginsInWord.test(text.slice(end, end + widest)))
  }
  return places
}
