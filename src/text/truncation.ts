/**
 * Sequences of tokens cut to a length, as in Hugging Face's tokenizers: tokens of the texts are removed from the end, or from the beginning if the
 * tokenizer states so; special tokens stay. A text that is too long is refused unless the caller requests truncation.
 */
import { usageError } from '../errors.js'

/** A sequence of tokens. */
export interface Encoded {
  readonly ids: readonly number[]
  readonly tokens: readonly string[]
  /** Number of the text that each token belongs to, 0 or 1, for two texts. The tokenizer decides for special tokens. */
  readonly types?: readonly number[] | undefined
}

/** Side from which tokens of a text are removed. */
export type Side = 'left' | 'right'

/**
 * Truncation side of a tokenizer's files: `truncation_side` of `tokenizer_config.json`, or else the direction of the truncation that `tokenizer.json`
 * was saved with (tokenization_utils_fast.py of transformers).
 * @throws an error for another one
 */
export function sideOf(definition: object, config: object): Side {
  const { truncation } = definition as { readonly truncation?: { readonly direction?: unknown } | null }
  const { truncation_side: stated = truncation?.direction ?? 'right' } = config as { readonly truncation_side?: unknown }
  const side = typeof stated === 'string' ? stated.toLowerCase() : stated
  if (side === 'left' || side === 'right') return side
  throw new Error(`truncation_side is ${JSON.stringify(stated)}, expected "left" or "right"`)
}

/** Text to cut: the longer one of two texts until both are equally long, or one of them alone. */
export const truncations = ['longest_first', 'only_first', 'only_second'] as const

export interface Truncation {
  readonly how: (typeof truncations)[number]
  /** Maximum number of tokens, special ones included. */
  readonly most: number
}

/**
 * A sequence of at most `most` tokens.
 * @param parts ids of the one or two texts in it, without special tokens
 * @throws usage `run.truncate` if nothing would remain of the text to cut, or there is no second text
 */
export function truncated(
  whole: Encoded,
  parts: readonly (readonly number[])[],
  { how, most }: Truncation,
  side: Side = 'right',
): Encoded {
  const lengths = parts.map(({ length }) => length)
  const special = whole.ids.length - lengths.reduce((sum, length) => sum + length, 0)
  const kept = keptTokens(lengths, most - special, { how, most })
  const dropped = new Set<number>()
  let from = 0
  for (const [i, part] of parts.entries()) {
    const first = placeOf(part, whole.ids, from)
    const left = kept[i] ?? 0
    const [begin, end] = side === 'right' ? [left, part.length] : [0, part.length - left]
    for (let at = begin; at < end; at++) dropped.add(first + at)
    from = first + part.length
  }
  const rest = <T>(values: readonly T[]): T[] => values.filter((_, at) => !dropped.has(at))
  const { ids, tokens, types } = whole
  return { ids: rest(ids), tokens: rest(tokens), types: types === undefined ? undefined : rest(types) }
}

/** Position of a text in a sequence, from `from` on. */
function placeOf(part: readonly number[], ids: readonly number[], from: number): number {
  for (let first = from; first + part.length <= ids.length; first++) {
    if (part.every((id, i) => ids[first + i] === id)) return first
  }
  throw new Error('internal: a text is not in its own sequence')
}

/** Number of tokens that each text keeps, where they have `room` together. */
function keptTokens(lengths: readonly number[], room: number, { how, most }: Truncation): readonly number[] {
  const [first = 0, second] = lengths
  const refuse = (why: string) => usageError('run.truncate', `a case cannot be cut to ${most} tokens by ${how}: ${why}`)
  if (room < 1) throw refuse('special tokens leave no room')
  if (how === 'only_second' && second === undefined) throw refuse('it has no second text')
  if (how === 'longest_first') return second === undefined ? [room] : longestFirst(first, second, room)
  const cut = how === 'only_first' ? first : (second ?? 0)
  const left = room - (first + (second ?? 0) - cut)
  if (left < 1) throw refuse(`the ${how === 'only_first' ? 'first' : 'second'} text has ${cut} tokens, and none would be left`)
  return how === 'only_first' ? [left, second ?? 0] : [first, left]
}

/** Cuts the shorter text only if it is longer than half of the room. If the room is odd, the longer text gets more; of equal texts the second. */
function longestFirst(first: number, second: number, room: number): readonly number[] {
  const [shorter, half] = [Math.min(first, second), Math.floor(room / 2)]
  const [less, more] = shorter <= half ? [shorter, room - shorter] : [half, room - half]
  return first > second ? [more, less] : [less, more]
}
