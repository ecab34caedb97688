/** From what steps leave on the device to texts: the words of each row so far, and the best of its beams. */
import { beforeEnd, foundBeams, type Hypothesis } from '../decoding/beam_trace.js'
import type { Beams } from '../decoding/generation_options.js'
import { noNumbers } from '../parts/no_numbers.js'
import type { StreamedTokens } from '../parts/options.js'
import type { Reached } from './ahead.js'
import type { LlamaConfig } from './config.js'
import type { Leg } from './legs.js'
import type { Rows } from './rows.js'
import type { RowsShape } from './shapes.js'

export interface LlamaResult {
  /** Generated ids, without an end id. */
  readonly ids: readonly number[]
  /** What ended the text: an end id, or the limit of tokens. */
  readonly finish: 'end' | 'limit'
  /** The best hypotheses, best first, where beams were asked for. */
  readonly beams?: readonly Hypothesis[]
}

export interface LlamaTokens extends StreamedTokens {
  /** What ended the text, with its last tokens. */
  readonly finish?: LlamaResult['finish']
}

/** The words of each leg so far. @throws finding `run.value` for a word that was chosen by what is no number */
export function textsOf(
  { eos }: LlamaConfig,
  { rows: count }: RowsShape,
  legs: readonly Leg[],
  { step: until, history }: Reached,
): number[][] {
  return legs.map(({ index, chosen, limit }, row) => {
    const ids: number[] = []
    for (let step = chosen; step < Math.min(until, limit); step++) {
      const id = history[step * count + row] ?? -1
      if (id < 0) throw noLogits(index, step)
      ids.push(id)
      // What stands behind an end was not asked for, and may not have been computed.
      if (eos.includes(id)) break
    }
    return ids
  })
}

/** Tokens that texts have beyond those sent before, by case: what legs have chosen. */
export function* newTokens(
  legs: readonly Leg[],
  words: readonly (readonly number[])[],
  { eos, maxNewTokens }: { readonly eos: readonly number[]; readonly maxNewTokens: number },
  sent: number[],
): Generator<LlamaTokens> {
  for (const [row, { index, chosen }] of legs.entries()) {
    const text = words[row] ?? []
    const before = sent[index] ?? 0
    const now = chosen + text.length
    // A row that has ended was sent with its end id.
    if (now === before) continue
    const ids = beforeEnd(text, eos)
    const finish = ids.length < text.length ? 'end' : now >= maxNewTokens ? 'limit' : undefined
    yield { index, ids: ids.slice(before - chosen), ...(finish === undefined ? {} : { finish }) }
    sent[index] = now
  }
}

const noLogits = (index: number, step: number): Error => noNumbers(`case ${index}: logits of token ${step} are not finite`)

/** A row that has ended, as a result. */
export function resultOf(ids: readonly number[], eos: readonly number[]): LlamaResult {
  const kept = beforeEnd(ids, eos)
  return { ids: kept, finish: kept.length < ids.length ? 'end' : 'limit' }
}

/** Holds the words of beams to having been chosen by numbers. @throws finding `run.value` naming the case and the token */
export function expectWords(
  history: ArrayLike<number>,
  { rows, width, cases }: { readonly rows: number; readonly width: number; readonly cases: readonly number[] },
): void {
  for (let at = 0; at < history.length; at++) {
    const index = cases[Math.floor((at % rows) / width)]
    if (index !== undefined && (history[at] ?? -1) < 0) throw noLogits(index, Math.floor(at / rows))
  }
}

/** @throws finding `run.value` for a hypothesis whose score is not finite, and where there is none */
function expectScores(index: number, hypotheses: readonly Hypothesis[]): void {
  if (hypotheses.length === 0) throw noNumbers(`case ${index}: no beam has a finite score`)
  const wrong = hypotheses.findIndex(({ score }) => !Number.isFinite(score))
  if (wrong >= 0) throw noNumbers(`case ${index}: the score of beam ${wrong} is ${hypotheses[wrong]?.score}`)
}

/** The best texts of each sequence's beams. @throws finding `run.value` where beams were chosen by what is not finite */
export async function beamResults(
  { eos }: LlamaConfig,
  rows: Rows,
  choice: Beams,
  { most, cases }: { readonly most: number; readonly cases: readonly number[] },
): Promise<LlamaResult[]> {
  const { rows: count, width } = rows.shape
  const history = await rows.state('history')
  const [done = 0] = await rows.state('step')
  expectWords(history.subarray(0, Math.min(done, most) * count), { rows: count, width, cases })
  const found = await foundBeams(rows.state, choice, { batch: count / width, ends: eos, most })
  for (const [i, index] of cases.entries()) expectScores(index, found[i] ?? [])
  return found.slice(0, cases.length).map((beams) => {
    const ids = beams[0]?.ids ?? []
    return { ids, finish: ids.length < most ? 'end' : 'limit', beams }
  })
}
