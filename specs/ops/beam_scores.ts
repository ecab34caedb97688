/** A row's log-softmax from the statistics of its parts that `beam_candidates` computes, shared by the rules of beam search. */
import { exp, log, max, sum } from 'heddle'

/** The largest logit of a row of `p` parts. */
export const largestOf = (p: number, tops: (q: number) => number): number => max(p, (q) => tops(q))

/** The sum of exp(logit - top) over a row of `p` parts. */
export const sumOver = (p: number, tops: (q: number) => number, sums: (q: number) => number, top: number): number =>
  sum(p, (q) => sums(q) * exp(tops(q) - top))

/** Value to subtract from a logit of the row for the logarithm of its softmax. `top` is the row's largest logit. */
export const normaliserOf = (p: number, tops: (q: number) => number, sums: (q: number) => number, top: number): number =>
  top + log(sumOver(p, tops, sums, top))

/** Facts about the results of `beam_candidates`. */
export const ofParts = {
  p: { swept: true, upTo: 66 },
  // One part of a beam has a sum of 1 and its row's largest logit, the others a sum of 0: the value subtracted from a logit is then an integer.
  tops: { first: 3, values: [-1, -2, -3, -4, 0] },
  sums: { first: 1, values: [0] },
  ids: { from: -1, to: 1000 },
} as const

/** Facts about all beams of a sequence, and about the ids that end a beam. */
export const candidates = { n: 'w*p*k', o: 1, ...ofParts, ends: { from: 0, to: 1000 } } as const
