/** Texts to token ids and back, by a model's `tokenizer.json`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Tokenizer as HfTokenizer } from '@huggingface/tokenizers'
import { usageError } from '../../errors.js'

export interface Encoded {
  readonly ids: readonly number[]
  readonly tokens: readonly string[]
}

export interface EncodedWords extends Encoded {
  /** The word each token belongs to; -1 for special tokens. */
  readonly words: readonly number[]
}

export interface Tokenizer {
  /** Encodes a text; special tokens are added unless switched off. */
  encode(text: string, options?: { readonly special?: boolean }): Encoded
  /** Encodes words one by one and joins them as one sequence, so that each token is known to belong to a word. */
  encodeWords(words: readonly string[]): EncodedWords
  /** The text of token ids; special tokens are left out unless kept. */
  decode(ids: readonly number[], options?: { readonly special?: boolean }): string
  idOf(token: string): number | undefined
}

/**
 * Loads `tokenizer.json` and, if there is one, `tokenizer_config.json` of a model folder.
 * @throws usage `tokenizer.read` when tokenizer.json cannot be read, `tokenizer.invalid` when it is not a tokenizer this understands
 */
export async function loadTokenizer(dir: string): Promise<Tokenizer> {
  const path = join(dir, 'tokenizer.json')
  const definition = await readJson(path)
  if (definition === undefined) {
    throw usageError('tokenizer.read', `there is no ${path}`, { hint: 'without a tokenizer, give token ids instead of text' })
  }
  const config = (await readJson(join(dir, 'tokenizer_config.json'))) ?? {}
  try {
    return wrap(new HfTokenizer(definition, config))
  } catch (cause) {
    throw usageError('tokenizer.invalid', `${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

function wrap(hf: HfTokenizer): Tokenizer {
  const encode: Tokenizer['encode'] = (text, { special = true } = {}) => {
    const { ids, tokens } = hf.encode(text, { add_special_tokens: special })
    return { ids, tokens }
  }
  /** The special tokens put before and after a text. */
  const surroundings = (text: string): readonly [number[], number[]] => {
    const bare = encode(text, { special: false }).ids
    const full = encode(text).ids
    const at = full.findIndex((_, start) => bare.every((id, i) => full[start + i] === id))
    return [full.slice(0, at), full.slice(at + bare.length)]
  }
  return {
    encode,
    encodeWords(words) {
      const pieces = words.map((word) => encode(word, { special: false }))
      const inner = pieces.flatMap(({ ids, tokens }, word) => ids.map((id, i) => ({ id, token: tokens[i] ?? '', word })))
      const [before, after] = surroundings(words.find((_, i) => (pieces[i]?.ids.length ?? 0) > 0) ?? '')
      const special = (ids: readonly number[]) => ids.map((id) => ({ id, token: hf.id_to_token(id) ?? '', word: -1 }))
      const all = [...special(before), ...inner, ...special(after)]
      return { ids: all.map(({ id }) => id), tokens: all.map(({ token }) => token), words: all.map(({ word }) => word) }
    },
    // The library refuses an empty list; a result may be empty.
    decode: (ids, { special = false } = {}) => (ids.length === 0 ? '' : hf.decode([...ids], { skip_special_tokens: !special })),
    idOf: (token) => hf.token_to_id(token),
  }
}

/** A JSON object file, or undefined if it does not exist. */
async function readJson(path: string): Promise<object | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw usageError('tokenizer.read', `cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch (cause) {
    throw usageError('tokenizer.invalid', `${path} is not JSON`, { cause })
  }
  throw usageError('tokenizer.invalid', `${path} is not a JSON object`)
}
