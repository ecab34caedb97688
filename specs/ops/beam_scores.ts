/** What the rules of beam search share: a row's log-softmax, from the statistics that `beam_candidates` leaves of its parts. */
import { exp, log, max, sum } from 'heddle'

/** The largest logit of a row of `p` parts. */
export const largestOf = (p: number, tops: (q: number) => number): number => max(p, (q) => tops(q))

/** What to take from a logit of the row for the logarithm of its softmax. `top` is the row's largest logit. */
export const normaliserOf = (p: number, tops: (q: number) => number, sums: (q: number) => number, top: number): number =>
  top + log(sum(p, (q) => sums(q) * exp(tops(q) - top)))
