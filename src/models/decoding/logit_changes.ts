/**
 * What changes logits before a word is chosen, in whatever way: options, checked; which parts of a program they need; and what their states
 * hold before the first step. Steps apply them in the order of Hugging Face's `generate` (specs/programs/processors.ts).
 */
import type { Processors } from '../../../specs/programs/processors.js'
import { factor, refuse, whole } from './option_checks.js'

/** What a caller may say of logits; everything has a default. */
export interface LogitOptions {
  /** Divides positive and multiplies negative logits of words that were chosen before; 1 changes nothing. Not with beams. */
  readonly repetitionPenalty?: number
  /** So many tokens come before an end id may. Not with beams. */
  readonly minNewTokens?: number
  /** The first token of every text, such as the language that a model is to translate to. Of a model that continues its prompt, only behind a prompt of one token. */
  readonly forcedBosTokenId?: number
  /** The last token of a text that `maxNewTokens` cuts off: an end id, or one of several. */
  readonly forcedEosTokenId?: number | readonly number[]
}

export interface LogitChanges {
  /** 1: none. */
  readonly repetitionPenalty: number
  readonly minNewTokens: number
  /** Undefined: any. */
  readonly forcedFirst: number | undefined
  /** Empty: any. */
  readonly forcedLast: readonly number[]
}

export const noChanges: LogitChanges = { repetitionPenalty: 1, minNewTokens: 0, forcedFirst: undefined, forcedLast: [] }

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
    forcedFirst: first === undefined ? undefined : whole('forcedBosTokenId', first, 0, vocab - 1),
    forcedLast,
  }
}

/** The parts of a program. Words that a model never says are its own matter. */
export const processorsOf = (changes: LogitChanges): Omit<Processors, 'banned'> => ({
  penalised: changes.repetitionPenalty !== 1,
  minimum: changes.minNewTokens > 0,
  forced: changes.forcedFirst !== undefined || changes.forcedLast.length > 0,
})

/** How many ids a program has room for that texts are made to end with: at least 1, or 0 where it forces none. */
export const forcedEnds = (changes: LogitChanges): number =>
  processorsOf(changes).forced ? Math.max(changes.forcedLast.length, 1) : 0

/** What is known of rows before the first step. */
export interface ChangedRows {
  readonly rows: number
  /** Flags of the words that each row has had. */
  readonly seen: () => Int32Array
  /** Whether a row has one token so far: its next is the first that is forced. */
  readonly begins: (row: number) => boolean
}

/** Contents of the states that logits are changed by, the same of all rows but for what they have had. */
export function changeStates(
  changes: LogitChanges & { readonly maxNewTokens: number },
  { rows, seen, begins }: ChangedRows,
): Readonly<Record<string, Int32Array | Float32Array>> {
  const { repetitionPenalty, minNewTokens, maxNewTokens, forcedFirst, forcedLast } = changes
  const { penalised, minimum, forced } = processorsOf(changes)
  const integers = (value: number): Int32Array => new Int32Array(rows).fill(value)
  return {
    ...(minimum && { minimum: integers(minNewTokens) }),
    ...(penalised && { seen: seen(), penalty: new Float32Array(rows).fill(repetitionPenalty) }),
    ...(forced && {
      forcedFirst: Int32Array.from({ length: rows }, (_, row) => (begins(row) ? (forcedFirst ?? free) : free)),
      forcedLast: Int32Array.from(forcedLast.length === 0 ? [free] : forcedLast),
      most: integers(maxNewTokens),
    }),
  }
}

/** Stands for no word. */
const free = -1
