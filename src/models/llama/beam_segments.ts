/**
 * Beams whose texts outgrow the original positions of longrope: the search state at the end of a RoPE segment, which the next segment
 * starts with. As in Hugging Face's `generate`, the whole text of every beam is read again with the long table, each into its own row,
 * and the search continues; scores and finished hypotheses stay.
 */
import { wordsOf } from '../decoding/beam_trace.js'
import type { Beams, Generation } from '../decoding/generation_options.js'
import { expectWords } from './results.js'
import type { CarriedBeams, RopeSegment } from './rope_segments.js'
import type { Rows } from './rows.js'

const poolStates = { plain: [], hf: ['poolScores', 'poolSteps', 'poolRows', 'poolWords'] } as const

/**
 * State that a search at the end of a segment continues from; undefined if the search is over.
 * @param segment index of the case, its prompt, and the steps taken if the search is not over
 * @throws finding `run.value` if beams were chosen from values that are not finite
 */
export async function carriedBeams(
  rows: Rows,
  { rule, width }: Pick<Beams, 'rule' | 'width'>,
  { index, prompt, limit, logprobs }: Pick<RopeSegment, 'index' | 'prompt' | 'limit'> & Pick<Generation, 'logprobs'>,
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
  const states: Record<string, Int32Array | Float32Array> = { finished }
  for (const state of ['cumulative', ...poolStates[rule]] as const) {
    const values = await rows.state(state)
    states[state] = state === 'cumulative' || state === 'poolScores' ? Float32Array.from(values) : Int32Array.from(values)
  }
  const texts = Array.from({ length: width }, (_, row) => [...prompt, ...wordsOf(steps, limit, row, width)])
  const losses = logprobs ? Float32Array.from((await rows.state('losses')).subarray(0, limit * count)) : undefined
  return { texts, states, history, parents, losses }
}
