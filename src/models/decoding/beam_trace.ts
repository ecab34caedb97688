/**
 * Backtracking of a beam search. Every step stores, per decoder row, the token it took and the row it continues. Tokens are read backwards
 * from the rows that the search ends with. Runs on the host, once per search.
 */
import { findingError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import type { HostArrays } from '../../runtime/buffer.js'
import type { Beams } from './generation_options.js'

/** Tokens and parents of each step, by row b*width + beam; parents are rows before the step. */
export interface BeamHistory {
  readonly words: readonly ArrayLike<number>[]
  readonly parents: readonly ArrayLike<number>[]
  /** Negative log-likelihood of each token by the model's own logits, if requested. */
  readonly losses?: readonly ArrayLike<number>[] | undefined
}

/** A finished text. */
export interface Hypothesis {
  /** Generated ids before the end id. */
  readonly ids: readonly number[]
  /** Log-probability of each id by the model's own logits, if requested. */
  readonly logprobs?: readonly number[]
  /** Sum of the log-probabilities of its ids, the end id included. */
  readonly cumLogProb: number
  /** Score that orders hypotheses: `cumLogProb`, which the HF rule divides by length^lengthPenalty. */
  readonly score: number
}

export interface TraceOptions {
  readonly batch: number
  readonly width: number
  readonly ends: readonly number[]
  /** Hypotheses to return per sequence, at most `width`. */
  readonly count: number
}

/** Final pool of the HF rule, batch x width, best first; see `beam_select_hf`. */
export interface BeamPool {
  readonly scores: ArrayLike<number>
  readonly steps: ArrayLike<number>
  readonly rows: ArrayLike<number>
  readonly words: ArrayLike<number>
}

interface FoundOptions {
  readonly batch: number
  readonly ends: readonly number[]
  /** Number of steps that count: the search may have run a few more. */
  readonly most: number
  /** True if the log-probability of each id is requested. */
  readonly logprobs: boolean
}

/**
 * The best hypotheses of each sequence of a finished search, by either rule.
 * @param read reads a state's current contents
 * @throws finding `beam.history`, `generation.nan`
 */
export async function foundBeams(
  read: (state: string) => Promise<HostArrays[DType]>,
  choice: Beams,
  { batch, ends, most, logprobs }: FoundOptions,
): Promise<Hypothesis[][]> {
  const { width } = choice
  const rows = batch * width
  const [done = 0] = await read('step')
  const byStep = (values: HostArrays[DType]): ArrayLike<number>[] =>
    Array.from({ length: Math.min(done, most) }, (_, step) => values.subarray(step * rows, (step + 1) * rows))
  const history = {
    words: byStep(await read('history')),
    parents: byStep(await read('parents')),
    losses: logprobs ? byStep(await read('losses')) : undefined,
  }
  const options = { batch, width, ends, count: choice.returned }
  if (choice.rule === 'plain') return traceBeams(history, await read('cumulative'), options)
  const pool = {
    scores: await read('poolScores'),
    steps: await read('poolSteps'),
    rows: await read('poolRows'),
    words: await read('poolWords'),
  }
  return tracePool(history, pool, { ...options, lengthPenalty: choice.lengthPenalty })
}

/**
 * The best hypotheses of each sequence by the plain rule.
 * @param scores cumulative log-probabilities after the last step, batch x width, best first
 * @throws finding `beam.history` where a row continues one of another sequence
 */
export function traceBeams(history: BeamHistory, scores: ArrayLike<number>, options: TraceOptions): Hypothesis[][] {
  return eachPlace(options, (row) => {
    const cumLogProb = scores[row] ?? Number.NaN
    const path = rowsOf(history, history.words.length, row, options.width)
    return [{ ...chosenOn(history, path, options.ends), cumLogProb, score: cumLogProb }]
  })
}

/** Hypotheses of each sequence, from its first rows or pool slots. */
const eachPlace = ({ batch, width, count }: TraceOptions, found: (at: number) => Hypothesis[]): Hypothesis[][] =>
  Array.from({ length: batch }, (_, b) =>
    Array.from({ length: Math.min(count, width) }, (_, place) => found(b * width + place)).flat(),
  )

/**
 * The best hypotheses of each sequence by the HF rule; fewer than requested if the search stopped before the pool was full.
 * @throws finding `beam.history` where a row continues one of another sequence
 */
export function tracePool(
  history: BeamHistory,
  pool: BeamPool,
  options: TraceOptions & { readonly lengthPenalty: number },
): Hypothesis[][] {
  return eachPlace(options, (at) => {
    const step = pool.steps[at] ?? -1
    if (step < 0) return []
    const [row, word] = [pool.rows[at] ?? -1, pool.words[at] ?? -1]
    const before = step === 0 ? [] : rowsOf(history, step, row, options.width)
    const score = pool.scores[at] ?? Number.NaN
    // A last word that is no end id was chosen at the limit, by a row of that step.
    const last = options.ends.includes(word) ? [] : [rowOfWord(history, step, { parent: row, word, width: options.width })]
    return [
      {
        ...chosenOn(history, [...before, ...last], options.ends),
        cumLogProb: score * (step + 1) ** options.lengthPenalty,
        score,
      },
    ]
  })
}

/**
 * The tokens of the first `steps` steps that lead to a row after them.
 * @throws finding `beam.history` where a row continues one of another sequence
 */
export const wordsOf = (history: BeamHistory, steps: number, last: number, width: number): number[] =>
  rowsOf(history, steps, last, width).map((row, step) => history.words[step]?.[row] ?? -1)

/** The rows of the first `steps` steps that lead to a row after them. @throws like `wordsOf` */
function rowsOf({ words, parents }: BeamHistory, steps: number, last: number, width: number): number[] {
  const found: number[] = []
  const sequence = Math.floor(last / width)
  let row = last
  for (let step = steps - 1; step >= 0; step--) {
    const [word, parent] = [words[step]?.[row], parents[step]?.[row]]
    if (word === undefined || parent === undefined || Math.floor(parent / width) !== sequence) {
      throw findingError(
        'beam.history',
        `step ${step}: row ${row} continues row ${parent}, sequence ${sequence} has ${width} rows`,
      )
    }
    found.push(row)
    row = parent
  }
  return found.reverse()
}

/** The row that a step gave to a word after a row. @throws finding `beam.history` if it gave none */
function rowOfWord(
  { words, parents }: BeamHistory,
  step: number,
  { parent, word, width }: { readonly parent: number; readonly word: number; readonly width: number },
): number {
  const first = parent - (parent % width)
  const rows = Array.from({ length: width }, (_, beam) => first + beam)
  const found = rows.find((row) => parents[step]?.[row] === parent && words[step]?.[row] === word)
  if (found !== undefined) return found
  throw findingError('beam.history', `step ${step}: no row continues row ${parent} with token ${word}`)
}

/** Ids on a path of rows, one per step, up to an end id, and their log-probabilities if they were kept. @throws like `beforeEnd` */
function chosenOn({ words, losses }: BeamHistory, path: readonly number[], ends: readonly number[]) {
  const ids = beforeEnd(
    path.map((row, step) => words[step]?.[row] ?? -1),
    ends,
  )
  return losses === undefined
    ? { ids }
    : { ids, logprobs: ids.map((_, step) => -(losses[step]?.[path[step] ?? -1] ?? Number.NaN)) }
}

/** Tokens of a row before its end id. @throws finding `generation.nan` if a step has no token because its logits were NaN */
export function beforeEnd(ids: readonly number[], ends: readonly number[]): number[] {
  const end = ids.findIndex((id) => ends.includes(id))
  const words = end === -1 ? [...ids] : ids.slice(0, end)
  const missing = words.findIndex((id) => id < 0)
  if (missing < 0) return words
  throw findingError('generation.nan', `the logits of token ${missing + 1} contain NaN: no token can be chosen`, {
    hint: 'a weight is NaN or infinite, or values exceed the storage type: try --dtype bf16 or f32',
  })
}
