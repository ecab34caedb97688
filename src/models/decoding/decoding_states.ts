/**
 * States that decoding holds on the device between steps: their sizes for a batch, and their contents before the first step.
 * Rows are the beams of all sequences: `width` consecutive rows per sequence.
 */
import { decoderSizes } from '../seq2seq/programs.js'
import type { Seq2seqConfig } from '../seq2seq/seq2seq_config.js'
import { type BeamSizes, beamParts, beamSizes, emptyPool, initialScores } from './beam_search.js'
import { type Choice, candidatesOf, type Generation, type Sampling } from './generation_options.js'
import { changeStates, forcedEnds } from './logit_changes.js'

export interface DecodingShape {
  readonly batch: number
  /** Rows of a sequence: its beams. */
  readonly width: number
  /** Positions of the encoder's output, padding included. */
  readonly source: number
  /** True if an attention mask over pairs is given with the sources. */
  readonly masked?: boolean
  /** Positions of the caches: the maximum number of steps. */
  readonly capacity: number
  /** Number of end ids; at least 1. */
  readonly ends: number
}

/** End id of a model without one; no token has it. */
const noEnd = -1

/** Extents of the decoder graphs' open dimensions. */
export const decodingDims = (
  config: Seq2seqConfig,
  generation: Generation,
  { batch, width, source, capacity, ends }: DecodingShape,
) => ({
  b: batch,
  w: width,
  s: capacity,
  t: source,
  e: ends,
  ...(forcedEnds(generation) > 0 && { f: forcedEnds(generation) }),
  ...(config.badTokens.length > 0 && { x: config.badTokens.length }),
  ...decoderSizes(config),
  ...candidateDims(generation.choice, config.vocab, ends),
})

/** Parts of a row of logits and candidates per part, if tokens are chosen among candidates. */
export function candidateDims(choice: Choice, vocab: number, ends: number): Partial<BeamSizes> {
  if (choice.kind === 'beams') return beamSizes({ ...choice, vocab, ends })
  const k = choice.kind === 'sampling' ? candidatesOf(choice) : undefined
  return k === undefined ? {} : { p: beamParts(vocab), k }
}

/** Initial values of a batch. */
export interface DecodingStart {
  readonly startToken: number
  readonly endTokens: readonly number[]
  /** Number of tokens that the decoder attends in each source. */
  readonly lengths: readonly number[]
  /** Indices of the cases in the whole run, for their seeds. */
  readonly cases: readonly number[]
}

/** Capacity of a shape for end ids. */
export const endsOf = (endTokens: readonly number[]): number => endIds(endTokens).length

/** Contents of the state with the end ids. */
export const endIds = (endTokens: readonly number[]): Int32Array => Int32Array.from(endTokens.length === 0 ? [noEnd] : endTokens)

/** Contents of states, by name. */
export type StateValues = Readonly<Record<string, Int32Array | Float32Array>>

/** Initial contents of the states that need them. Caches keep their old contents, which steps never read. */
export function initialStates(
  { vocab, badTokens }: Pick<Seq2seqConfig, 'vocab' | 'badTokens'>,
  generation: Generation,
  { batch, width, capacity }: DecodingShape,
  start: DecodingStart,
): StateValues {
  const rows = batch * width
  const integers = (value: number): Int32Array => new Int32Array(rows).fill(value)
  const { choice } = generation
  const values: StateValues = {
    step: new Int32Array(1),
    words: integers(start.startToken),
    finished: integers(0),
    beams: ownRows(rows, capacity),
    lengths: Int32Array.from(start.lengths),
    ends: endIds(start.endTokens),
    // Always banned: no text reaches this number of tokens.
    ...(badTokens.length > 0 && { banned: Int32Array.from(badTokens), always: integers(2 ** 31 - 1) }),
    ...changeStates(generation, { rows, vocab, places: capacity, textOf: () => [start.startToken] }),
  }
  if (choice.kind === 'beams') {
    const cumulative = initialScores(batch, width, choice.rule)
    if (choice.rule === 'plain') return { ...values, cumulative }
    return { ...values, cumulative, finished: new Int32Array(batch), ...emptyPool(batch, width) }
  }
  return { ...values, limit: integers(generation.maxNewTokens), ...drawStates(choice, start.cases) }
}

/** Sampling parameters of each row; empty without sampling. */
export const drawStates = (choice: Choice, cases: readonly number[]): StateValues =>
  choice.kind === 'sampling' ? samplingStates(choice, cases) : {}

/** Table in which every row attends to its own cache entries. Filled by a loop because it is large and refilled for every batch. */
function ownRows(rows: number, capacity: number): Int32Array {
  const table = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) table.fill(row, row * capacity, (row + 1) * capacity)
  return table
}

/** Sampling parameters of each row. A seed is stored as two 32-bit integers. */
function samplingStates({ temperature, topK, topP, minP, seeds }: Sampling, cases: readonly number[]) {
  const seedOf = (at: number): number => seeds[seeds.length === 1 ? 0 : at] ?? 0
  const floats = (value: number): Float32Array => new Float32Array(cases.length).fill(value)
  return {
    temperature: floats(temperature),
    topP: floats(topP),
    minP: floats(minP),
    topK: new Int32Array(cases.length).fill(topK),
    seedsLow: Int32Array.from(cases, (at) => seedOf(at) | 0),
    seedsHigh: Int32Array.from(cases, (at) => Math.floor(seedOf(at) / 2 ** 32)),
  }
}
