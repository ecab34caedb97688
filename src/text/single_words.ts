/**
 * Added tokens that are words of their own (`single_word` of `tokenizer.json`): where a letter, a digit or an underscore is beside one, it is no
 * token, but text like any other (added_vocabulary.rs of Hugging Face's tokenizers). The library here takes it there too, so that texts
 * with such a place are encoded by a tokenizer that does not have the token.
 */
import { z } from 'zod'

const definitionSchema = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ content: z.string(), single_word: z.boolean().optional(), normalized: z.boolean().optional() }))
    .default([]),
})

export interface SingleWord {
  readonly content: string
  /** True if it is looked for in the normalised text, as it is normalised itself. */
  readonly normalized: boolean
}

/** The tokens of a parsed `tokenizer.json` that are words of their own. */
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

/** Characters of words, as Rust's regular expressions know them. */
const letter = String.raw`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]`
const endsInWord = new RegExp(`${letter}$`, 'u')
const beginsInWord = new RegExp(`^${letter}`, 'u')
/** Code units of the longest character. */
const widest = 2

/**
 * The contents of tokens that texts have inside of words.
 * @throws an error for a token that they have as a word of its own besides
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

/** True if each occurrence of a word is inside of another. */
function placesOf(text: string, word: string): boolean[] {
  const places: boolean[] = []
  if (word === '') return places
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
    const end = at + word.length
    places.push(endsInWord.test(text.slice(Math.max(0, at - widest), at)) || beginsInWord.test(text.slice(end, end + widest)))
  }
  return places
}
