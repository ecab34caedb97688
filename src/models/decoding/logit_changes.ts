/**
 * What changes logits before a word is chosen, in whatever way: options, checked; which parts of a program they need; and what their states
 * hold before the first step. Steps apply them in the order of Hugging Face's `generate` (specs/programs/processors.ts).
 */
import type { Processors } from '../../../specs/programs/processors.js'
import { factor, refuse, whole } from './option_checks.js'

/** What a caller may say of logits; everything has a default. */
export interface LogitOptions {
  /** Divides positive and multiplies negative logits of words that a text has, its prompt included; 1 changes nothing. */
  readonly repetitionPenalty?: number
  /** So many words that follow each other are not repeated in a text, its prompt included; 0, the default: all may be. */
  readonly noRepeatNgramSize?: number
  /** So many tokens come before an end id may. */
  readonly minNewTokens?: number
  /** The first token of every text, such as the language that a model is to translate to. Of a model that continues its prompt, only behind a prompt of one token. */
  readonly forcedBosTokenId?: number
  /** The last token of a text that `maxNewTokens` cuts off: an end id, or one of several. */
  readonly forcedEosTokenId?: number | readonly number[]
}

export interface LogitChanges {
  /** 1: none. */
  readonly repetitionPenalty: number
  /** 0: any words may be repeated. */
  readonly noRepeatNgramSize: number
  readonly minNewTokens: number
  /** Undefined: any. */
  readonly forcedFirst: number | undefined
  /** Empty: any. */
  readonly forcedLast: readonly number[]
}

export const noChanges: LogitChanges = {
  ...{ repetitionPenalty: 1, noRepeatNgramSize: 0, minNewTokens: 0 },
  ...{ forcedFirst: undefined, forcedLast: [] },
}

/** More words than a text has are never repeated. */
const mostRepeated = 2 ** 30

/** @throws usage `generate.<option>` naming the value and what is allowed */
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

/** The parts of a program. Words that a model never says are its own matter. */
export const processorsOf = (changes: LogitChanges): Omit<Processors, 'banned'> => ({
  penalised: changes.repetitionPenalty !== 1,
  ngrams: changes.noRepeatNgramSize,
  minimum: changes.minNewTokens > 0,
  forced: changes.forcedFirst !== undefined || changes.forcedLast.length > 0,
})

/** How many ids a program has room for that texts are made to end with: at least 1, or 0 where it forces none. */
export const forcedEnds = (changes: LogitChanges): number =>
  processorsOf(changes).forced ? Math.max(changes.forcedLast.length, 1) : 0

/** What is known of rows before the first step. */
export interface ChangedRows {
  readonly rows: number
  readonly vocab: number
  /** Places that there are for a row's text. */
  readonly places: number
  /** What a row has so far: its prompt or start token; nothing where it is of no text. */
  readonly textOf: (row: number) => readonly number[]
}

/** Contents of the states that logits are changed by, the same of all rows but for what they have had. */
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

/** Stands for no word. */
const free = -1

/** Flags of the words that texts have. */
function seenIn(textOf: ChangedRows['textOf'], rows: number, vocab: number): Int32Array {
  const seen = new Int32Array(rows * vocab)
  for (let row = 0; row < rows; row++) for (const id of textOf(row)) seen[row * vocab + id] = 1
  return seen
}

/** Texts side by side, each with room for what is chosen. */
function textsIn(textOf: ChangedRows['textOf'], rows: number, places: number): Int32Array {
  const texts = new Int32Array(rows * places)
  for (let row = 0; row < rows; row++) texts.set(textOf(row).slice(0, places), row * places)
  return texts
}
