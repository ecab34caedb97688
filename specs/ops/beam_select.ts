/**
 * Second stage of a step of beam search, by FasterTransformer's plain rule: a beam that has ended continues with its end id at no cost, and the best
 * continuations of all beams survive.
 */
import { idiv, int, maximum, minimum, op, row, sum, tensor, topK } from 'heddle'
import { candidates, largestOf, normaliserOf } from './beam_scores.js'

/**
 * The beams of sequences `b` after a step. `values` and `ids` are the candidates of a sequence's beams, n = w*p*k, from `beam_candidates`; `k` is at
 * least `w`. `parents` are rows (b*w + beam) before the step. Ties go to the lower beam and then to the lower id. If no candidate is left, the score
 * is -Infinity. `step` counts the tokens before this one; after `maxSteps` of them every beam has ended. If there is no end id, an id below 0 takes
 * its place, and beams that have ended continue with word 0. Before the first step all beams of a sequence are equal: `cumulative` is 0 for the first
 * and -1e20 for the others.
 */
export const beamSelect = op('beam_select', {
  dims: ['b', 'w', 'p', 'k', 'n', 'e', 'o'],
  inputs: {
    values: tensor('f32', 'b n'),
    ids: tensor('i32', 'b w p k'),
    tops: tensor('f32', 'b w p'),
    sums: tensor('f32', 'b w p'),
    cumulative: tensor('f32', 'b w'),
    finished: tensor('i32', 'b w'),
    step: tensor('i32', 'o'),
    ends: tensor('i32', 'e'),
  },
  outputs: {
    words: tensor('i32', 'b w'),
    parents: tensor('i32', 'b w'),
    scores: tensor('f32', 'b w'),
    ended: tensor('i32', 'b w'),
  },
  attrs: { maxSteps: int(1024) },
  facts: {
    ...candidates,
    w: { atMost: 'k' },
    finished: { from: 0, to: 1 },
    step: { values: [2] },
    scores: 'exact',
  },
  body:
    ({ values, ids, tops, sums, cumulative, finished, step, ends }, { w, p, k, n, e, maxSteps }) =>
    (b) => {
      const partTop = (j: number, q: number): number => tops(b, minimum(j, w - 1), q)
      const partSum = (j: number, q: number): number => sums(b, minimum(j, w - 1), q)
      const top = row(k, (j) => largestOf(p, (q) => partTop(j, q)))
      const normaliser = row(k, (j) =>
        normaliserOf(
          p,
          (q) => partTop(j, q),
          (q) => partSum(j, q),
          top(j),
        ),
      )
      const id = (c: number): number => ids(b, idiv(c, p * k), idiv(c, k) % p, c % k)
      const best = topK(k, n, (c) => {
        const j = idiv(c, p * k)
        const x = values(b, c)
        const going = x === Number.NEGATIVE_INFINITY && id(c) < 0 ? Number.NaN : cumulative(b, j) + (x - normaliser(j))
        // A beam that has ended has one continuation, in the place of its first candidate.
        const gone = c === j * p * k ? cumulative(b, j) : Number.NaN
        return finished(b, j) > 0 ? gone : going
      })
      const place = (i: number): number => maximum(best.indices(i), 0)
      const parent = (i: number): number => idiv(place(i), p * k)
      const word = (i: number): number => (finished(b, parent(i)) > 0 ? maximum(ends(0), 0) : id(place(i)))
      const last = step(0) + 1 >= maxSteps
      const isEnd = (i: number): boolean => sum(e, (x) => (ends(x) === word(i) ? 1 : 0)) > 0
      return {
        words: row(w, (i) => word(i)),
        parents: row(w, (i) => b * w + parent(i)),
        scores: row(w, (i) => best.values(i)),
        ended: row(w, (i) => (last || finished(b, parent(i)) > 0 || isEnd(i) ? 1 : 0)),
      }
    },
})
