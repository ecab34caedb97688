/** Restores punctuation with a token classifier whose labels are punctuation marks; a demonstration of an encoder. */
import { usageError } from '../../errors.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import type { BatchOptions } from '../parts/options.js'
import type { Encoder } from './encoder_pipeline.js'

/** The label of words that no mark follows. */
const none = 'O'

interface Piece {
  readonly ids: readonly number[]
  /** Per word of the piece, the position of its last token; undefined for a word without tokens. */
  readonly lastTokens: readonly (number | undefined)[]
}

/**
 * Inserts punctuation after the words of a text. Marks the model knows are removed first, unless inside a word. The last token
 * of a word carries its label. A text longer than the model's positions is split at word boundaries.
 * @throws usage `punctuation.model` if the model has no `O` label, and what `run` of the encoder throws
 */
export async function restorePunctuation(
  encoder: Encoder,
  tokenizer: Tokenizer,
  text: string,
  options: BatchOptions = {},
): Promise<string> {
  const { labels, positions } = encoder.config
  if (!labels.includes(none)) {
    throw usageError(
      'punctuation.model',
      `the model's labels are ${labels.join(' ') || 'none'}: restoring punctuation needs ${none} and marks`,
    )
  }
  const marks = labels.filter((label) => label !== none)
  const words = text
    .split(/\s+/)
    .map((word) => stripMarks(word, marks))
    .filter((word) => word !== '')
  if (words.length === 0) return ''
  const pieces = cut(tokenizer, words, positions)
  const results = await encoder.run(
    pieces.map(({ ids }) => ({ inputIds: ids })),
    options,
  )
  const found = pieces.flatMap(({ lastTokens }, i) => {
    const result = results[i]
    return lastTokens.map((token) => (result?.kind === 'token-classifier' && token !== undefined ? result.labels[token] : none))
  })
  return words.map((word, i) => (found[i] === undefined || found[i] === none ? word : `${word}${found[i]}`)).join(' ')
}

function stripMarks(word: string, marks: readonly string[]): string {
  let end = word.length
  while (end > 0 && marks.includes(word.charAt(end - 1))) end--
  return word.slice(0, end)
}

/** Splits words into sequences of at most `positions` tokens, special tokens included. */
function cut(tokenizer: Tokenizer, words: readonly string[], positions: number): Piece[] {
  const pieces: Piece[] = []
  let start = 0
  while (start < words.length) {
    // A word has at least one token, so no piece holds more words than there are positions.
    let end = Math.min(words.length, start + positions)
    let encoded = tokenizer.encodeWords(words.slice(start, end))
    while (encoded.ids.length > positions && end > start + 1) {
      end = start + Math.max(1, encoded.words[positions - 2] ?? 1)
      encoded = tokenizer.encodeWords(words.slice(start, end))
    }
    const lastTokens = words.slice(start, end).map((_, word) => {
      const token = encoded.words.lastIndexOf(word)
      return token < 0 ? undefined : token
    })
    pieces.push({ ids: encoded.ids, lastTokens })
    start = end
  }
  return pieces
}
