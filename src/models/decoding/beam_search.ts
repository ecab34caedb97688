/**
 * What a beam search is set up with: how many candidates its kernels look at, into how many parts they cut a row of logits, and the state
 * before the first step. Runs once for a search; the steps are the graphs of specs/graphs/beam.ts.
 */
import { usageError } from '../../errors.js'
import { countFor, rankedCounts } from '../../ir/top_k.js'

/** FasterTransformer's plain rule, or that of Hugging Face's `generate`. */
export type BeamRule = 'plain' | 'hf'

/** Logits of a part: enough to keep a block busy, few enough that one row fills several multiprocessors. */
const partLength = 2048

/**
 * Parts of a row of `vocab` logits. They follow from the vocabulary alone: were there more parts for a small batch, sums would round
 * otherwise, and a result would depend on what else is in the batch.
 */
export const beamParts = (vocab: number): number => Math.max(1, Math.ceil(vocab / partLength))

/** Extents of a step's graph that a search chooses. */
export interface BeamSizes {
  /** Parts of a row of logits. */
  readonly p: number
  /** Candidates of each part: a count kernels are compiled for. */
  readonly k: number
}

/**
 * The extents for `width` beams over a vocabulary. The HF rule looks at as many candidates as leave `width` beams going even when every
 * beam's best are its `ends` end ids.
 * @throws usage `beam.width` for a width that is no positive integer, beyond half of the vocabulary, or beyond what kernels are compiled for
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
    throw usageError('beam.width', `a beam search of ${width} beams is asked for, allowed are 1 to ${most}`, {
      hint: `the vocabulary has ${vocab} ids, and the ${rule} rule looks at ${each} continuations a beam`,
    })
  }
  return { p: beamParts(vocab), k: countFor(each * width) }
}

/** Scores of beams that equal the first one of their sequence before the first step. */
export const notYet = { plain: -1e20, hf: -1e9 } as const

/** Cumulative log-probabilities before the first step: `batch` x `width`. */
export const initialScores = (batch: number, width: number, rule: BeamRule): Float32Array =>
  Float32Array.from({ length: batch * width }, (_, row) => (row % width === 0 ? 0 : notYet[rule]))

/** The pool of the HF rule before the first step: `batch` x `width` places, all empty. */
export const emptyPool = (batch: number, width: number) => {
  const places = batch * width
  return {
    poolScores: new Float32Array(places).fill(notYet.hf),
    poolSteps: new Int32Array(places).fill(-1),
    poolRows: new Int32Array(places),
    poolWords: new Int32Array(places),
  }
}
