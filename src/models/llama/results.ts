/** Texts from the results of steps on the device: the tokens of each row so far, and the best of its beams. */
import { beforeEnd, foundBeams, type Hypothesis } from '../decoding/beam_trace.js'
import type { Beams } from '../decoding/generation_options.js'
import { noNumbers } from '../parts/no_numbers.js'
import type { StreamedTokens } from '../parts/options.js'
import type { Reached } from './ahead.js'
import type { LlamaConfig } from './config.js'
import type { RopeSegment } from './rope_segments.js'
import type { Rows } from './rows.js'
import type { RowsShape } from './shapes.js'

export interface LlamaResult {
  /** Generated ids, without an end id. */
  readonly ids: readonly number[]
  /** Reason the text ended: an end id, or the token limit. */
  readonly finish: 'end' | 'limit'
  /** Log-probabilities of the ids, if requested. */
  readonly logprobs?: readonly number[]
  /** The best hypotheses, best first, if beams were requested. */
  readonly beams?: readonly Hypothesis[]
}

/** Tokens that a segment has chosen so far, an end id included. */
export interface Chosen {
  readonly ids: readonly number[]
  /** Log-probability of each token, if requested. */
  readonly logprobs?: readonly number[] | undefined
}

export interface LlamaTokens extends StreamedTokens {
  /** Reason the text ended, given with its last tokens. */
  readonly finish?: LlamaResult['finish']
}

/** Tokens of each segment so far. @throws finding `run.value` for a token that was chosen from values that are not finite */
export function textsOf(
  { eos }: LlamaConfig,
  { rows: count }: RowsShape,
  segments: readonly RopeSegment[],
  { step: until, history, losses }: Reached,
): Chosen[] {
  return segments.map(({ index, chosen, limit }, row) => {
    const ids: number[] = []
    const logprobs: number[] = []
    for (let step = chosen; step < Math.min(until, limit); step++) {
      const id = history[step * count + row] ?? -1
      if (id < 0) throw noLogits(index, step)
      ids.push(id)
      logprobs.push(-(losses?.[step * count + row] ?? 0))
      // Tokens after an end id are not needed, and may not have been computed.
      if (eos.includes(id)) break
    }
    return losses === undefined ? { ids } : { ids, logprobs }
  })
}

/** Tokens of segments that were not sent before, by case. */
export function* newTokens(
  segments: readonly RopeSegment[],
  words: readonly Chosen[],
  { eos, maxNewTokens }: { readonly eos: readonly number[]; readonly maxNewTokens: number },
  sent: number[],
): Generator<LlamaTokens> {
  for (const [row, { index, chosen }] of segments.entries()) {
    const { ids: text, logprobs } = words[row] ?? { ids: [] }
    const before = sent[index] ?? 0
    const now = chosen + text.length
    // A row that has ended was already sent with its finish.
    if (now === before) continue
    const ids = beforeEnd(text, eos)
    const finish = ids.length < text.length ? 'end' : now >= maxNewTokens ? 'limit' : undefined
    yield {
      ...{ index, ids: ids.slice(before - chosen) },
      ...(logprobs === undefined ? {} : { logprobs: logprobs.slice(before - chosen, ids.length) }),
      ...(finish === undefined ? {} : { finish }),
    }
    sent[index] = now
  }
}

const noLogits = (index: number, step: number): Error => noNumbers(`case ${index}: logits of token ${step} are not finite`)

/** A row that has ended, as a result. */
export function resultOf({ ids, logprobs }: Chosen, eos: readonly number[]): LlamaResult {
  const text = beforeEnd(ids, eos)
  return {
    ...{ ids: text, finish: text.length < ids.length ? ('end' as const) : ('limit' as const) },
    ...(logprobs === undefined ? {} : { logprobs: logprobs.slice(0, text.length) }),
  }
}

/** Concatenates the tokens of consecutive segments. */
export const joined = (before: Chosen | undefined, { ids, logprobs }: Chosen): Chosen => ({
  ids: [...(before?.ids ?? []), ...ids],
  ...(logprobs === undefined ? {} : { logprobs: [...(before?.logprobs ?? []), ...logprobs] }),
})

/** Checks that the tokens of beams were chosen from finite numbers. @throws finding `run.value` naming the case and the token */
export function expectWords(
  history: ArrayLike<number>,
  { rows, width, cases }: { readonly rows: number; readonly width: number; readonly cases: readonly number[] },
): void {
  for (let at = 0; at < history.length; at++) {
    const index = cases[Math.floor((at % rows) / width)]
    if (index !== undefined && (history[at] ?? -1) < 0) throw noLogits(index, Math.floor(at / rows))
  }
}

/** @throws finding `run.value` for a hypothesis whose score is not finite, and if there is none */
function expectScores(index: number, hypotheses: readonly Hypothesis[]): void {
  if (hypotheses.length === 0) throw noNumbers(`case ${index}: no beam has a finite score`)
  const wrong = hypotheses.findIndex(({ score }) => !Number.isFinite(score))
  if (wrong >= 0) throw noNumbers(`case ${index}: the score of beam ${wrong} is ${hypotheses[wrong]?.score}`)
}

/** The best texts of each sequence's beams. @throws finding `run.value` if beams were chosen from values that are not finite */
export async function beamResults(
  { eos }: LlamaConfig,
  rows: Rows,
  choice: Beams,
  { most, cases, logprobs }: { readonly most: number; readonly cases: readonly number[]; readonly logprobs: boolean },
): Promise<LlamaResult[]> {
  const { rows: count, width } = rows.shape
  const history = await rows.state('history')
  const [done = 0] = await rows.state('step')
  expectWords(history.subarray(0, Math.min(done, most) * count), { rows: count, width, cases })
  const found = await foundBeams(rows.state, choice, { batch: count / width, ends: eos, most, logprobs })
  for (const [i, index] of cases.entries()) expectScores(index, found[i] ?? [])
  return found.slice(0, cases.length).map((beams) => {
    const { ids, logprobs: chosen } = beams[0] ?? { ids: [] }
    return { ids, ...(chosen && { logprobs: chosen }), finish: ids.length < most ? 'end' : 'limit', beams }
  })
}
