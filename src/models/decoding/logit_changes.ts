/**
 * Logit processors, applied before a token is chosen by any method: their checked options, the program parts they need, and the initial
 * contents of their states. Steps apply them in the order of Hugging Face's `generate` (specs/programs/processors.ts).
 */
import type { Processors } from '../../../specs/programs/processors.js'
import { factor, refuse, whole } from './option_checks.js'

/** Logit options of a caller; each has a default. */
export interface LogitOptions {
  /** Divides positive and multiplies negative logits of tokens already in the text, its prompt included; 1 changes nothing. */
  readonly repetitionPenalty?: number
  /** Sequences of this many tokens are not repeated in a text, its prompt included; 0, the default, allows all repetitions. */
  readonly noRepeatNgramSize?: number
  /** Minimum number of tokens before an end id is allowed. */
  readonly minNewTokens?: number
  /** First token of every text, such as the target language of a translation. Models that continue prompts apply it only after a one-token prompt. */
  readonly forcedBosTokenId?: number
  /** Last token of a text that reaches `maxNewTokens`: an end id, or one of several. */
  readonly forcedEosTokenId?: number | readonly number[]
}

export interface LogitChanges {
  /** 1 for no penalty. */
  readonly repetitionPenalty: number
  /** 0 if all repetitions are allowed. */
  readonly noRepeatNgramSize: number
  readonly minNewTokens: number
  /** Undefined if the first token is free. */
  readonly forcedFirst: number | undefined
  /** Empty if the last token is free. */
  readonly forcedLast: readonly number[]
}

export const noChanges: LogitChanges = {
  ...{ repetitionPenalty: 1, noRepeatNgramSize: 0, minNewTokens: 0 },
  ...{ forcedFirst: undefined, forcedLast: [] },
}

/** Largest n-gram size, longer than any text. */
const mostRepeated = 2 ** 30

/** Checks logit options. @throws usage `generate.<option>` naming the value and the allowed range */
export function resolveChanges(
  options: LogitOptions,
  { vocab, maxNewTokens }: { readonly vocab: number; readonly maxNewTokens: number },
): LogitChanges {
  const { forcedBosTokenId: first, forcedEosTokenId: last } = options
  const forcedLast: readonly number[] = last === undefined ? [] : typeof last === 'object' && last !== null ? last : [last]
  if (last !== undefined && !(forcedLast.length >= 1)) refuse('forcedEosTokenId', last, 'a token id, or several')
  for (const id of forcedLast) whole('forcedEosTokenId', id, 0, vocab - 1)
  return {
    minNewTokens: whole('minNewTokens', options.minNewTokens ?? 0, 0, maxNewTokens),
    repetitionPenalty: factor('repetitionPenalty', options.repetitionPenalty ?? 1),
    noRepeatNgramSize: whole('noRepeatNgramSize', options.noRepeatNgramSize ?? 0, 0, mostRepeated),
    forcedFirst: first === undefined ? undefined : whole('forcedBosTokenId', first, 0, vocab - 1),
    forcedLast,
  }
}

/** Processors that a program needs. Tokens that the model bans come from its own configuration. */
export const processorsOf = (changes: LogitChanges): Omit<Processors, 'banned'> => ({
  penalised: changes.repetitionPenalty !== 1,
  ngrams: changes.noRepeatNgramSize,
  minimum: changes.minNewTokens > 0,
  forced: changes.forcedFirst !== undefined || changes.forcedLast.length > 0,
})

/** Number of forced last tokens that a program has room for: at least 1, or 0 if it forces none. */
export const forcedEnds = (changes: LogitChanges): number =>
  processorsOf(changes).forced ? Math.max(changes.forcedLast.length, 1) : 0

/** State of the rows before the first step. */
export interface ChangedRows {
  readonly rows: number
  readonly vocab: number
  /** Maximum length of a row's text. */
  readonly places: number
  /** Tokens of a row so far: its prompt or start token; empty for an unused row. */
  readonly textOf: (row: number) => readonly number[]
}

/** Initial contents of the processors' states. Rows differ only in their texts so far. */
export function changeStates(
  changes: LogitChanges & { readonly maxNewTokens: number },
  { rows, vocab, places, textOf }: ChangedRows,
): Readonly<Record<string, Int32Array | Float32Array>> {
  const { repetitionPenalty, minNewTokens, maxNewTokens, forcedFirst, forcedLast } = changes
  const { penalised, ngrams, minimum, forced } = processorsOf(changes)
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  return {
    ...(minimum && { minimum: ofRows(() => minNewTokens) }),
    ...(penalised && { seen: seenIn(textOf, rows, vocab), penalty: new Float32Array(rows).fill(repetitionPenalty) }),
    ...(ngrams > 0 && { text: textsIn(textOf, rows, places), places: ofRows((row) => Math.max(textOf(row).length - 1, 0)) }),
    ...(forced && {
      forcedFirst: ofRows((row) => (textOf(row).length === 1 ? (forcedFirst ?? free) : free)),
      forcedLast: Int32Array.from(forcedLast.length === 0 ? [free] : forcedLast),
      most: ofRows(() => maxNewTokens),
    }),
  }
}

/** Token id for "not forced". */
const free = -1

/** Flags of the tokens that occur in each text. */
function seenIn(textOf: ChangedRows['textOf'], rows: number, vocab: number): Int32Array {
  const seen = new Int32Array(rows * vocab)
  for (let row = 0; row < rows; row++) for (const id of textOf(row)) seen[row * vocab + id] = 1
  return seen
}

/** Texts as rows of a table, each with room for generated tokens. */
function textsIn(textOf: ChangedRows['textOf'], rows: number, places: number): Int32Array {
  const texts = new Int32Array(rows * places)
  for (let row = 0; row < rows; row++) texts.set(textOf(row).slice(0, places), row * places)
  return texts
}
