/**
 * The tokenizer of a GGUF file: its vocabulary and merges, converted to the `tokenizer.json` that they came from. The file gives the pre-tokenizer by
 * name. An unknown name is refused, since another pre-tokenizer would give other ids.
 */

import type { GgufValue } from '../checkpoint/gguf_header.js'
import { shown } from '../checkpoint/safetensors_header.js'
import { usageError } from '../errors.js'
import { type ChatTemplate, chatTemplate } from './chat_template.js'
import { type Tokenizer, tokenizerOf } from './tokenizer.js'

type Metadata = ReadonlyMap<string, GgufValue>

/** Token types by number. */
const kinds = { unknown: 2, control: 3, userDefined: 4 } as const

const word = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false }
const split = (pattern: string) => ({
  type: 'Sequence',
  pretokenizers: [{ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false }, word],
})
const digits = (count: string): string =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${count}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`
/** Pre-tokenizer of Mistral's Tekken: letters are split between lower and upper case, and each digit is a token of its own. */
const tekken =
  '[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'
const gpt2 = { ...word, use_regex: true }

interface Splitting {
  readonly pre_tokenizer: object
  readonly normalizer?: object
  readonly ignore_merges?: boolean
  /** Default for a leading first token, if the file does not state it. */
  readonly first: boolean
}

const qwen2: Splitting = { pre_tokenizer: split(digits('')), normalizer: { type: 'NFC' }, first: false }

/**
 * Pre-tokenizers, by `tokenizer.ggml.pre`. Names and expressions are those that llama.cpp publishes (src/llama-vocab.cpp, which quotes the
 * `tokenizer.json` of each). The distillations of DeepSeek-R1 split as Qwen2, and state their first token.
 */
const splittings: Readonly<Record<string, Splitting>> = {
  'gpt-2': { pre_tokenizer: gpt2, first: false },
  smollm: {
    pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, gpt2] },
    first: false,
  },
  'llama-bpe': { pre_tokenizer: split(digits('{1,3}')), ignore_merges: true, first: true },
  tekken: { pre_tokenizer: split(tekken), ignore_merges: true, first: true },
  qwen2,
  'deepseek-r1-qwen': qwen2,
}

/**
 * The tokenizer of a file's metadata.
 * @throws usage `tokenizer.read` with the reason, if none can be made from the file; `tokenizer.invalid`, `tokenizer.time`
 */
export function ggufTokenizer(metadata: Metadata, name: string): Tokenizer {
  const refuse: Refuse = (what) =>
    usageError('tokenizer.read', `${name} ${what}`, { hint: 'without a tokenizer, give token ids instead of text' })
  const tokens = list(metadata, 'tokens', 'string')
  if (tokens === undefined) throw refuse('has no words of a tokenizer')
  if (new Set(tokens).size !== tokens.length) throw refuse('has words of a tokenizer twice')
  const types = list(metadata, 'token_type', 'number') ?? []
  const model = metadata.get('tokenizer.ggml.model')
  const specific =
    model === 'gpt2' ? byteLevelDefinition(metadata, tokens, refuse) : sentencePieceDefinition(metadata, tokens, types, refuse)
  const definition = { version: '1.0', added_tokens: addedTokens(tokens, types), ...specific }
  return tokenizerOf(definition, { clean_up_tokenization_spaces: false }, name)
}

type Refuse = (what: string) => Error

const addedTokens = (tokens: readonly string[], types: readonly number[]) =>
  tokens.flatMap((content, id) => {
    const type = types[id]
    if (type !== kinds.control && type !== kinds.userDefined && type !== kinds.unknown) return []
    const special = type !== kinds.userDefined
    return [{ id, content, special, normalized: false, lstrip: false, rstrip: false, single_word: false }]
  })

const vocabOf = (tokens: readonly string[]) => Object.fromEntries(tokens.map((token, id) => [token, id]))

/** BPE over bytes, with the file's merges and a pre-tokenizer by name. */
function byteLevelDefinition(metadata: Metadata, tokens: readonly string[], refuse: Refuse): object {
  const pre = metadata.get('tokenizer.ggml.pre') ?? 'none'
  const splitting = typeof pre === 'string' && Object.hasOwn(splittings, pre) ? splittings[pre] : undefined
  const merges = list(metadata, 'merges', 'string')
  if (splitting === undefined) {
    throw refuse(`splits texts by ${shown(JSON.stringify(pre))}, expected one of ${Object.keys(splittings).join(', ')}`)
  }
  if (merges === undefined) throw refuse('has no merges of a tokenizer')
  const { pre_tokenizer, normalizer = null, ignore_merges = false } = splitting
  return {
    ...{ normalizer, pre_tokenizer, post_processor: beginning(metadata, tokens, splitting.first), decoder: word },
    model: { type: 'BPE', unk_token: null, byte_fallback: false, ignore_merges, vocab: vocabOf(tokens), merges },
  }
}

/** SentencePiece's BPE, whose merges follow from the scores of pieces. */
function sentencePieceDefinition(
  metadata: Metadata,
  tokens: readonly string[],
  types: readonly number[],
  refuse: Refuse,
): object {
  const model = metadata.get('tokenizer.ggml.model')
  const scores = list(metadata, 'scores', 'number')
  if (model !== 'llama' || scores === undefined) {
    throw refuse(`has a tokenizer of type ${shown(JSON.stringify(model ?? null))}, expected gpt2, or llama with scores`)
  }
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [
        ...(metadata.get('tokenizer.ggml.add_space_prefix') === false ? [] : [{ type: 'Prepend', prepend: '▁' }]),
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: beginning(metadata, tokens, true),
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
    model: {
      ...{ type: 'BPE', fuse_unk: true, byte_fallback: true, vocab: vocabOf(tokens), merges: mergesOf(tokens, types, scores) },
      unk_token: tokens[types.indexOf(kinds.unknown)] ?? null,
    },
  }
}

/** The chat template of a file's metadata, if it has one. @throws usage `chat.template` */
export function ggufTemplate(metadata: Metadata, name: string): ChatTemplate | undefined {
  const source = metadata.get('tokenizer.chat_template')
  if (typeof source !== 'string') return undefined
  const tokens = list(metadata, 'tokens', 'string') ?? []
  const token = (key: string): Record<string, string> => {
    const content = tokens[Number(metadata.get(`tokenizer.ggml.${key}_token_id`))]
    return content === undefined ? {} : { [`${key}_token`]: content }
  }
  return chatTemplate(source, `tokenizer.chat_template of ${name}`, { ...token('bos'), ...token('eos') })
}

function list(metadata: Metadata, key: string, type: 'string'): readonly string[] | undefined
function list(metadata: Metadata, key: string, type: 'number'): readonly number[] | undefined
function list(metadata: Metadata, key: string, type: 'string' | 'number'): readonly unknown[] | undefined {
  const value = metadata.get(`tokenizer.ggml.${key}`)
  return Array.isArray(value) && value.every((each) => typeof each === type) ? value : undefined
}

/** Post-processor that prepends the first token to a text. */
function beginning(metadata: Metadata, tokens: readonly string[], usual: boolean): object | null {
  const id = Number(metadata.get('tokenizer.ggml.bos_token_id'))
  const first = tokens[id]
  if (first === undefined || (metadata.get('tokenizer.ggml.add_bos_token') ?? usual) !== true) return null
  const single = [{ SpecialToken: { id: first, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }]
  const pair = [...single, { Sequence: { id: 'B', type_id: 1 } }]
  return { type: 'TemplateProcessing', single, pair, special_tokens: { [first]: { id: first, ids: [id], tokens: [first] } } }
}

/** Longest piece, in characters, for which merges are derived by trying all its splits. */
const longestWord = 64

/** BPE merges, by rank. SentencePiece has scores of pieces instead: the merge that forms the piece with the highest score comes first. */
function mergesOf(tokens: readonly string[], types: readonly number[], scores: readonly number[]): string[] {
  const ids = new Map(tokens.map((token, id) => [token, id]))
  const merges: { readonly left: string; readonly right: string; readonly score: number; readonly order: number }[] = []
  for (const [id, token] of tokens.entries()) {
    if ((types[id] ?? 1) !== 1 || token.length > longestWord) continue
    const letters = [...token]
    for (let at = 1; at < letters.length; at++) {
      const [left, right] = [letters.slice(0, at).join(''), letters.slice(at).join('')]
      const order = ids.get(left)
      if (order !== undefined && ids.has(right)) merges.push({ left, right, score: scores[id] ?? 0, order })
    }
  }
  return merges.sort((a, b) => b.score - a.score || a.order - b.order).map(({ left, right }) => `${left} ${right}`)
}
