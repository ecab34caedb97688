/** Scores of texts: the negative log-likelihood of each token but the first, given those before it, and logits at some positions. */
import { usageError } from '../../errors.js'
import { noNumbers } from '../parts/no_numbers.js'
import type { TokenCase } from '../parts/token_cases.js'
import type { Rows } from './rows.js'

export interface Score {
  /** Mean negative log-likelihood of all tokens but the first, in nats. */
  readonly loss: number
  /** Negative log-likelihood of each token but the first. */
  readonly losses: readonly number[]
  /** Logits of the token after each requested position. */
  readonly logits: readonly Float32Array[]
}

/** @throws usage `run.sequence`, `run.place` naming the case or the given value */
export function checkPlaces(cases: readonly TokenCase[], places: readonly number[]): void {
  if (!Array.isArray(places)) {
    throw usageError('run.place', `places is ${typeof places}, expected an array of places`, { hint: 'for example [0, 63]' })
  }
  for (const [index, { inputIds }] of cases.entries()) {
    if (inputIds.length < 2)
      throw usageError('run.sequence', `case ${index} has one token: only the tokens after the first are scored`)
    const wrong = places.find((place) => !Number.isInteger(place) || place < 0 || place >= inputIds.length)
    if (wrong !== undefined) {
      throw usageError('run.place', `case ${index} has ${inputIds.length} tokens, and no place ${wrong}`, {
        hint: `expected integers from 0 to ${inputIds.length - 1}`,
      })
    }
  }
}

export interface Scoring {
  readonly chunk: number
  readonly places: readonly number[]
  /** Index of the first text, for messages. */
  readonly first: number
  readonly vocab: number
}

/** Scores texts, one per row. @throws finding `run.value` for a loss or a logit that is not finite */
export async function scoreRows(
  rows: Rows,
  texts: readonly (readonly number[])[],
  { chunk, places, first, vocab }: Scoring,
  signal?: AbortSignal,
): Promise<Score[]> {
  const losses = texts.map((): number[] => [])
  const logits = texts.map((): Map<number, Float32Array> => new Map())
  const unread = texts.map((ids, row) => ({ row, first: 0, ids }))
  for (const pass of rows.passes(unread, chunk)) {
    signal?.throwIfAborted()
    const read = pass.flatMap(({ row, first, ids }) => ids.map((_, i) => ({ row, place: first + i })))
    const tokens = read.map(({ row, place }, at) => ({ row, place, at, target: texts[row]?.[place + 1] }))
    const followed = tokens.flatMap(({ target, ...token }) => (target === undefined ? [] : [{ ...token, target }]))
    if (followed.length > 0) {
      const request = { wanted: followed.map(({ at }) => at), targets: followed.map(({ target }) => target) }
      const found = await rows.ask(pass, request, signal)
      for (const [i, { row, place }] of followed.entries()) {
        const loss = found[i] ?? Number.NaN
        if (!Number.isFinite(loss)) throw noNumbers(`case ${first + row}: the loss after place ${place} is ${loss}`)
        losses[row]?.push(loss)
      }
    }
    const shown = tokens.filter(({ place }) => places.includes(place))
    if (shown.length === 0) continue
    // Reads the same tokens again, which rewrites the same values into the caches.
    const found = await rows.ask(pass, { wanted: shown.map(({ at }) => at) }, signal)
    for (const [i, { row, place }] of shown.entries()) {
      const each = found.slice(i * vocab, (i + 1) * vocab)
      const wrong = each.findIndex((logit) => !Number.isFinite(logit))
      if (wrong >= 0) throw noNumbers(`case ${first + row}: the logit of token ${wrong} after place ${place} is ${each[wrong]}`)
      logits[row]?.set(place, each)
    }
  }
  return losses.map((list, row) => ({
    loss: list.reduce((sum, loss) => sum + loss, 0) / list.length,
    losses: list,
    logits: places.map((place) => logits[row]?.get(place) ?? new Float32Array()),
  }))
}
