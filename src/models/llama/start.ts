/** What states hold before the first step behind prompts that were read, by how words are chosen. */
import { type BeamRule, emptyPool, initialScores } from '../decoding/beam_search.js'
import type { Generation } from '../decoding/generation_options.js'
import type { LlamaConfig } from './config.js'
import type { RowsShape } from './shapes.js'

type Values = Readonly<Record<string, Int32Array | Float32Array>>

/** An end id no word has: what stands for the end of a model without one. */
const noEnd = -1

export interface Start {
  /** Ids of each sequence; all but the last are cached. There may be rows for more. */
  readonly prompts: readonly (readonly number[])[]
  /** The cases' places in the whole run, for their seeds. */
  readonly cases: readonly number[]
}

/** What states hold before the first step behind prompts. The first step takes up the last token of each. */
export function startStates(
  { vocab, eos }: Pick<LlamaConfig, 'vocab' | 'eos'>,
  { choice, repetitionPenalty, maxNewTokens, minNewTokens }: Generation,
  shape: Pick<RowsShape, 'rows' | 'width' | 'capacity'>,
  { prompts, cases }: Start,
): Values {
  const ids = Int32Array.from(eos.length === 0 ? [noEnd] : eos)
  if (choice.kind === 'beams') return { ends: ids, ...beamStates(choice.rule, shape, prompts) }
  const { rows } = shape
  const integers = (value: number): Int32Array => new Int32Array(rows).fill(value)
  const floats = (value: number): Float32Array => new Float32Array(rows).fill(value)
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  const values: Record<string, Int32Array | Float32Array> = {
    step: new Int32Array(1),
    words: ofRows((row) => prompts[row]?.at(-1) ?? 0),
    places: ofRows((row) => (prompts[row]?.length ?? 1) - 1),
    // Rows without a prompt have ended before they begin.
    finished: ofRows((row) => (row < prompts.length ? 0 : 1)),
    ends: ids,
    limit: integers(maxNewTokens),
  }
  if (minNewTokens > 0) values.minimum = integers(minNewTokens)
  if (repetitionPenalty !== 1) {
    values.seen = seenIn(prompts, rows, vocab)
    values.penalty = floats(repetitionPenalty)
  }
  if (choice.kind !== 'sampling') return values
  const { temperature, topK, topP, minP, seeds } = choice
  const seedOf = (at: number): number => seeds[seeds.length === 1 ? 0 : at] ?? 0
  return {
    ...values,
    ...{ temperature: floats(temperature), topP: floats(topP), minP: floats(minP), topK: integers(topK) },
    seedsLow: ofRows((row) => seedOf(cases[row] ?? 0) | 0),
    seedsHigh: ofRows((row) => Math.floor(seedOf(cases[row] ?? 0) / 2 ** 32)),
  }
}

/** Words of the prompts count as seen. */
function seenIn(prompts: readonly (readonly number[])[], rows: number, vocab: number): Int32Array {
  const seen = new Int32Array(rows * vocab)
  for (const [row, ids] of prompts.entries()) for (const id of ids) seen[row * vocab + id] = 1
  return seen
}

/**
 * Of beams. All beams of a sequence begin with the last token of its prompt, and read what is cached of that where it was read to: in the
 * cache of the first. What they choose is at places behind the longest prompt.
 */
function beamStates(
  rule: BeamRule,
  { rows, width, capacity }: Pick<RowsShape, 'rows' | 'width' | 'capacity'>,
  prompts: Start['prompts'],
): Values {
  const first = prompts.reduce((most, { length }) => Math.max(most, length - 1), 0)
  const promptOf = (row: number): readonly number[] => prompts[Math.floor(row / width)] ?? [0]
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  const sequences = rows / width
  const beams = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) {
    beams.fill(row - (row % width), row * capacity, row * capacity + first)
    beams.fill(row, row * capacity + first, (row + 1) * capacity)
  }
  const cached = ofRows((row) => promptOf(row).length - 1)
  const values = {
    step: new Int32Array(1),
    slot: Int32Array.of(first),
    first: Int32Array.of(first),
    words: ofRows((row) => promptOf(row).at(-1) ?? 0),
    places: cached,
    cached,
    beams,
    cumulative: initialScores(sequences, width, rule),
  }
  // Sequences without a prompt have ended before they begin.
  if (rule === 'plain') return { ...values, finished: ofRows((row) => (row < prompts.length * width ? 0 : 1)) }
  const pool = emptyPool(sequences, width)
  const places = { poolScores: pool.scores, poolSteps: pool.steps, poolRows: pool.rows, poolWords: pool.words }
  const finished = Int32Array.from({ length: sequences }, (_, at) => (at < prompts.length ? 0 : 1))
  return { ...values, finished, ...places }
}
