/**
 * Beams whose texts outgrow the original positions of longrope: what a search leaves at the end of a leg, which the next one starts with.
 * Hugging Face's `generate` reads the whole text of every beam again with the long table and searches on; scores and finished hypotheses
 * stay. So it is here: every beam's text is read into a row of its own.
 */
import { wordsOf } from '../decoding/beam_trace.js'
import type { Beams } from '../decoding/generation_options.js'
import { expectWords } from './results.js'
import type { CarriedBeams } from './rope_segments.js'
import type { Rows } from './rows.js'

const keptOf = { plain: [], hf: ['poolScores', 'poolSteps', 'poolRows', 'poolWords'] } as const

/**
 * What a search that stands at the end of a leg goes on from; undefined where it is over.
 * @param leg the number of the case, its prompt, and the steps taken where the search is not over
 * @throws finding `run.value` where beams were chosen by what is no number
 */
export async function carriedBeams(
  rows: Rows,
  { rule, width }: Pick<Beams, 'rule' | 'width'>,
  { index, prompt, limit }: { readonly index: number; readonly prompt: readonly number[]; readonly limit: number },
): Promise<CarriedBeams | undefined> {
  const finished = Int32Array.from(await rows.state('finished'))
  if (finished.every((flag) => flag !== 0)) return undefined
  const { rows: count } = rows.shape
  const taken = async (state: string): Promise<Int32Array> =>
    Int32Array.from((await rows.state(state)).subarray(0, limit * count))
  const [history, parents] = [await taken('history'), await taken('parents')]
  expectWords(history, { rows: count, width, cases: [index] })
  const byStep = (values: Int32Array): Int32Array[] =>
    Array.from({ length: limit }, (_, step) => values.subarray(step * count, (step + 1) * count))
  const steps = { words: byStep(history), parents: byStep(parents) }
  const kept: Record<string, Int32Array | Float32Array> = { finished }
  for (const state of ['cumulative', ...keptOf[rule]] as const) {
    const values = await rows.state(state)
    kept[state] = state === 'cumulative' || state === 'poolScores' ? Float32Array.from(values) : Int32Array.from(values)
  }
  const texts = Array.from({ length: width }, (_, row) => [...prompt, ...wordsOf(steps, limit, row, width)])
  return { texts, kept, history, parents }
}
