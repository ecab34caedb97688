/**
 * Converts texts to token ids and back, by a model's `tokenizer.json`, or by its SentencePiece models if it has none. The files are not trusted:
 * however the library fails on them, a caller gets ids or an error with the file's name.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Tokenizer as HfTokenizer } from '@huggingface/tokenizers'
import { HeddleError, usageError } from '../errors.js'
import { isMissing, readText } from '../files.js'
import { followRules } from './precompiled.js'
import { sentencePieceTokenizer } from './sentencepiece/folder.js'
import { insideWords, singleWords, withoutTokens } from './single_words.js'
import { withStatedEnds } from './stated_ends.js'
import { withinTime } from './time_limit.js'
import type { TokenLibrary } from './token_library.js'
import { type Encoded, type Side, sideOf, type Truncation, truncated } from './truncation.js'

export interface EncodeOptions {
  /** True if special tokens are added; true by default. */
  readonly special?: boolean
  /** A second text, such as the context of a question. */
  readonly pair?: string | undefined
  /** Truncation of long sequences. */
  readonly truncate?: Truncation | undefined
}

export interface EncodedWords extends Encoded {
  /** Index of each token's word; -1 for special tokens. */
  readonly words: readonly number[]
}

export interface DecodeOptions {
  /** True if special tokens are kept; by default they are dropped. */
  readonly special?: boolean
  /**
   * True if blanks before punctuation are removed; by default the tokenizer's configuration decides. Generated text keeps them: cleaned text encodes
   * to other tokens, and cannot be shown before the next token is known.
   */
  readonly cleanUp?: boolean
}

/** All methods throw usage `tokenizer.invalid` if the file is invalid for the call, and `tokenizer.time` if it takes too long. */
export interface Tokenizer {
  /** Encodes a text, or two in one sequence. @throws usage `run.truncate` if the requested truncation is impossible */
  encode(text: string, options?: EncodeOptions): Encoded
  /** Encodes words one by one and concatenates them, so that the word of each token is known. */
  encodeWords(words: readonly string[]): EncodedWords
  /** Text of token ids. */
  decode(ids: readonly number[], options?: DecodeOptions): string
  idOf(token: string): number | undefined
}

/**
 * Loads `tokenizer.json` and, if there is one, `tokenizer_config.json` of a model folder; without the first, the SentencePiece models of Marian,
 * Pegasus and LLaMA folders.
 * @throws usage `tokenizer.read` if the files cannot be read, `tokenizer.invalid` for an unsupported tokenizer, `config.field` for a field of its
 * configuration, `tokenizer.time` if it takes too long
 */
export async function loadTokenizer(dir: string): Promise<Tokenizer> {
  const path = join(dir, 'tokenizer.json')
  const definition = await readJson(path)
  if (definition === undefined) {
    const pieces = await sentencePieceTokenizer(dir)
    if (pieces === undefined) throw usageError('tokenizer.read', `there is no ${path}`, { hint: hintWithoutTokenizer(dir) })
    return tokenizerBy(pieces.library, (await readJson(join(dir, 'tokenizer_config.json'))) ?? {}, pieces.path)
  }
  return tokenizerOf(definition, (await readJson(join(dir, 'tokenizer_config.json'))) ?? {}, path)
}

/** A tokenizer over a library other than that of `tokenizer.json`. */
function tokenizerBy(library: TokenLibrary, config: object, path: string): Tokenizer {
  const side = plainly(path)('load', 0, () => sideOf({}, config))
  return guarded(
    wrap(library, () => library, side),
    { guard: guardOf(path), decoding: plainly(path) },
  )
}

/** Tokenizer files older than `tokenizer.json`, of classes without support, with a remedy for each. */
const saving = 'AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers writes tokenizer.json beside it'
const older: readonly (readonly [string, string])[] = [
  ['source.spm', 'state "tokenizer_class": "MarianTokenizer" in tokenizer_config.json if it is Marian\'s'],
  ...['tokenizer.model', 'spiece.model', 'sentencepiece.bpe.model', 'vocab.txt', 'merges.txt'].map(
    (file) => [file, saving] as const,
  ),
]

/** Hint for a folder without `tokenizer.json`. */
function hintWithoutTokenizer(dir: string): string {
  const withIds = 'without a tokenizer, give token ids instead of text'
  const [file, how] = older.find(([name]) => existsSync(join(dir, name))) ?? []
  return file === undefined ? withIds : `${file} is not read: ${how}; ${withIds}`
}

/**
 * The tokenizer of a parsed `tokenizer.json` and `tokenizer_config.json`; `path` is used in messages.
 * @throws usage `tokenizer.invalid`, `tokenizer.time`
 */
export function tokenizerOf(definition: object, config: object, path: string): Tokenizer {
  const guard = guardOf(path)
  const ended = withStatedEnds(definition, config, path)
  // Streaming decodes every token, so a time limit is set only for decoders with regular expressions.
  const { decoder = null } = definition as { readonly decoder?: unknown }
  const watched = JSON.stringify(decoder).includes('"Regex"')
  const { hf, side } = guard('load', JSON.stringify(definition).length, () => ({
    hf: libraryOf(ended, config),
    side: sideOf(definition, config),
  }))
  return guarded(wrap(hf, encodersOf(hf, ended, config), side), { guard, decoding: watched ? guard : plainly(path) })
}

/** Guard around a library call: a description of the work, the number of characters, and the call. */
type Guard = <T>(what: string, characters: number, call: () => T) => T

/** Time limit of a call in milliseconds: far above the need of any tokenizer, even on a busy machine. */
const allowedMs = (characters: number): number => 3000 + characters

/** Adds the file's name to the error of a call. */
const plainly =
  (path: string): Guard =>
  (what, _, call) => {
    try {
      return call()
    } catch (cause) {
      if (cause instanceof HeddleError) throw cause
      throw usageError('tokenizer.invalid', `${path} cannot ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, {
        cause,
      })
    }
  }

/** The same, with a time limit. */
const guardOf =
  (path: string): Guard =>
  (what, characters, call) => {
    const done = plainly(path)(what, characters, () => withinTime(allowedMs(characters), call))
    if (done !== undefined) return done.value
    throw usageError('tokenizer.time', `${path} does not ${what} within ${allowedMs(characters) / 1000} s`, {
      hint: 'one of its regular expressions may need time that grows exponentially; give token ids instead of text',
    })
  }

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0)

/** The same tokenizer, with argument checks and guards. */
function guarded(tokenizer: Tokenizer, { guard, decoding }: { readonly guard: Guard; readonly decoding: Guard }): Tokenizer {
  const checked = <T extends Encoded>(encoded: T): T => {
    const wrong = encoded.ids.findIndex((id) => !Number.isInteger(id) || id < 0)
    if (wrong < 0) return encoded
    throw new Error(`token ${JSON.stringify(encoded.tokens[wrong])} has id ${String(encoded.ids[wrong])}`)
  }
  return {
    encode: (text, options) =>
      guard('encode a text', text.length + (options?.pair?.length ?? 0), () => checked(tokenizer.encode(text, options))),
    encodeWords: (words) => guard('encode words', lengthOf(words), () => checked(tokenizer.encodeWords(words))),
    decode: (ids, options) => decoding('decode ids', ids.length, () => tokenizer.decode(ids, options)),
    idOf: (token) => guard('look a token up', token.length, () => tokenizer.idOf(token)),
  }
}

/** The library's tokenizer, which normalises by the rules of its file. */
function libraryOf(definition: object, config: object): HfTokenizer {
  const hf = new HfTokenizer(definition, config)
  followRules(hf.normalizer)
  return hf
}

/** Chooses the tokenizer for texts: the one without the `single_word` tokens that these texts contain inside of words. */
function encodersOf(hf: HfTokenizer, definition: object, config: object): (texts: readonly string[]) => HfTokenizer {
  const words = singleWords(definition)
  const normal = (text: string): string => hf.normalizer?.normalize(text) ?? text
  const made = new Map<string, HfTokenizer>()
  return (texts) => {
    const inside = insideWords(texts, words, normal)
    if (inside.length === 0) return hf
    const key = JSON.stringify(inside)
    const encoder = made.get(key) ?? libraryOf(withoutTokens(definition, inside), config)
    made.set(key, encoder)
    return encoder
  }
}

/**
 * @param encoderOf chooses the encoder of texts that are encoded together
 * @param side that texts are cut from
 */
function wrap(hf: TokenLibrary, encoderOf: (texts: readonly string[]) => TokenLibrary, side: Side): Tokenizer {
  const encode: Tokenizer['encode'] = (text, { special = true, pair, truncate: how } = {}) => {
    const ofPair = pair === undefined ? {} : { text_pair: pair, return_token_type_ids: true }
    const encoder = encoderOf(pair === undefined ? [text] : [text, pair])
    const { ids, tokens, token_type_ids: types } = encoder.encode(text, { add_special_tokens: special, ...ofPair })
    const whole = { ids, tokens, types }
    if (how === undefined || ids.length <= how.most) return whole
    const bare = (part: string): readonly number[] => encode(part, { special: false }).ids
    return truncated(whole, pair === undefined ? [bare(text)] : [bare(text), bare(pair)], how, side)
  }
  /** Special tokens before and after a text. */
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
    decode: (ids, { special = false, cleanUp } = {}) =>
      ids.length === 0
        ? ''
        : hf.decode([...ids], { skip_special_tokens: !special, clean_up_tokenization_spaces: cleanUp ?? null }),
    idOf: (token) => hf.token_to_id(token),
  }
}

/** A JSON object file, or undefined if it does not exist. */
async function readJson(path: string): Promise<object | undefined> {
  let text: string
  try {
    text = await readText(path, { code: 'tokenizer.read' })
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (cause) {
    throw usageError('tokenizer.invalid', `${path} is not JSON`, { cause })
  }
  throw usageError('tokenizer.invalid', `${path} is not a JSON object`)
}
