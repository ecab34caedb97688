/**
 * What decoding keeps on the device between steps: how large it is for a batch, and what it holds before the first step.
 * Rows are the beams of all sequences, those of one sequence side by side; `width` of them belong to each.
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
  /** Places of the memory, padding included. */
  readonly source: number
  /** Places of the caches: the most steps. */
  readonly capacity: number
  /** How many end ids there are; at least 1. */
  readonly ends: number
}

/** An end id no word has: what stands for the end of a model without one. */
const noEnd = -1

/** Extents of the dimensions the decoder's graphs leave open. */
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

/** Parts of a row of logits, and candidates of each, where words are chosen among candidates. */
export function candidateDims(choice: Choice, vocab: number, ends: number): Partial<BeamSizes> {
  if (choice.kind === 'beams') return beamSizes({ ...choice, vocab, ends })
  const k = choice.kind === 'sampling' ? candidatesOf(choice) : undefined
  return k === undefined ? {} : { p: beamParts(vocab), k }
}

/** What a batch starts with. */
export interface DecodingStart {
  readonly startToken: number
  readonly endTokens: readonly number[]
  /** Valid places of each memory. */
  readonly lengths: readonly number[]
  /** The cases' places in the whole run, for their seeds. */
  readonly cases: readonly number[]
}

/** How many end ids a shape has room for. */
export const endsOf = (endTokens: readonly number[]): number => endIds(endTokens).length

/** The end ids as a state has them. */
export const endIds = (endTokens: readonly number[]): Int32Array => Int32Array.from(endTokens.length === 0 ? [noEnd] : endTokens)

/** What states hold, by their names. */
export type StateValues = Readonly<Record<string, Int32Array | Float32Array>>

/** Contents of the states whose values before the first step matter. Caches hold what they held: nothing beyond a step counts. */
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
    // No text has so many tokens as these words wait for.
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

/** Parameters of each row's draw; none where nothing is drawn. */
export const drawStates = (choice: Choice, cases: readonly number[]): StateValues =>
  choice.kind === 'sampling' ? samplingStates(choice, cases) : {}

/** The table by which every row attends to what it wrote itself. A loop: the table is large, and filled before every batch. */
function ownRows(rows: number, capacity: number): Int32Array {
  const table = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) table.fill(row, row * capacity, (row + 1) * capacity)
  return table
}

/** Parameters of each row's draw. A seed is two integers of 32 bits. */
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
