/**
 * Set-up of a beam search: the number of candidates its kernels consider, the number of parts they split a row of logits into, and the
 * state before the first step. Runs once per search; the steps are the graphs of specs/graphs/beam.ts.
 */
import { usageError } from '../../errors.js'
import { countFor, rankedCounts } from '../../ir/top_k.js'

/** FasterTransformer's plain rule, or that of Hugging Face's `generate`. */
export type BeamRule = 'plain' | 'hf'

/** Logits per part: enough to keep a block busy, few enough that one row fills several multiprocessors. */
const partLength = 2048

/**
 * Number of parts of a row of `vocab` logits. It depends on the vocabulary alone. With more parts for a small batch, sums would round
 * differently, and a result would depend on the rest of its batch.
 */
export const beamParts = (vocab: number): number => Math.max(1, Math.ceil(vocab / partLength))

/** Extents of a step's graph that a search chooses. */
export interface BeamSizes {
  /** Parts of a row of logits. */
  readonly p: number
  /** Candidates per part: a count that kernels are compiled for. */
  readonly k: number
}

/**
 * Extents for `width` beams over a vocabulary. The HF rule considers enough candidates for `width` beams to continue even if every
 * beam's best candidates are its `ends` end ids.
 * @throws usage `beam.width` for a width that is not a positive integer, exceeds half of the vocabulary, or exceeds the compiled kernels
 */
export function beamSizes({
  width,
  vocab,
  ends,
  rule,
}: {
  readonly width: number
  readonly vocab: number
  readonly ends: number
  readonly rule: BeamRule
}): BeamSizes {
  const each = rule === 'hf' ? Math.max(2, 1 + ends) : 1
  const most = Math.min(Math.floor(vocab / 2), Math.floor((rankedCounts.at(-1) ?? 1) / each))
  if (!Number.isInteger(width) || width < 1 || width > most) {
    throw usageError('beam.width', `beam width is ${width}, expected an integer from 1 to ${most}`, {
      hint: `the vocabulary has ${vocab} ids, and the ${rule} rule considers ${each} continuations per beam`,
    })
  }
  return { p: beamParts(vocab), k: countFor(each * width) }
}

/** Initial scores of the beams after the first of their sequence, which start with the same text. */
export const notYet = { plain: -1e20, hf: -1e9 } as const

/** Cumulative log-probabilities before the first step: `batch` x `width`. */
export const initialScores = (batch: number, width: number, rule: BeamRule): Float32Array =>
  Float32Array.from({ length: batch * width }, (_, row) => (row % width === 0 ? 0 : notYet[rule]))

/** The pool of the HF rule before the first step: `batch` x `width` slots, all empty. */
export const emptyPool = (batch: number, width: number) => {
  const places = batch * width
  return {
    poolScores: new Float32Array(places).fill(notYet.hf),
    poolSteps: new Int32Array(places).fill(-1),
    poolRows: new Int32Array(places),
    poolWords: new Int32Array(places),
  }
}
