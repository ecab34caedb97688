/**
 * Second stage of a step of beam search, by FasterTransformer's plain rule with a diversity rate. Words are compared by their score plus the rate
 * times the number of better words of the same beam. A rate below 0 favours words of different beams (Li, Jurafsky 2016). Only the comparison
 * changes: the scores of surviving beams are sums of log-probabilities.
 */
import { idiv, int, log, maximum, op, row, sum, tensor, topK } from 'heddle'
import { candidates } from './beam_scores.js'

/**
 * The beams of sequences `b` after a step, as in `beam_select`. `values` and `ids` are the candidates of a sequence's beams, n = w*k, best first, and
 * `tops` and `sums` the statistics for the log-softmax of each beam, all from `beam_rank`. Of each beam as many candidates count as there are beams;
 * `k` is at least `w`.
 */
export const beamSelectDiverse = op('beam_select_diverse', {
  dims: ['b', 'w', 'k', 'n', 'e', 'o'],
  inputs: {
    values: tensor('f32', 'b n'),
    ids: tensor('i32', 'b w k'),
    tops: tensor('f32', 'b w'),
    sums: tensor('f32', 'b w'),
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
  // Rate of the checks: 0 would compare as `beam_select` does.
  attrs: { diversityRate: -0.5, maxSteps: int(1024) },
  facts: {
    n: 'w*k',
    o: 1,
    w: { atMost: 'k' },
    // A sum of 1: the value subtracted from a logit is the row's largest one, an integer.
    sums: { values: [1] },
    ids: candidates.ids,
    ends: candidates.ends,
    finished: { from: 0, to: 1 },
    step: { values: [2] },
    scores: 'exact',
  },
  body:
    ({ values, ids, tops, sums, cumulative, finished, step, ends }, { w, k, n, e, diversityRate, maxSteps }) =>
    (b) => {
      const scoreOf = (c: number): number =>
        cumulative(b, idiv(c, k)) + (values(b, c) - (tops(b, idiv(c, k)) + log(sums(b, idiv(c, k)))))
      const id = (c: number): number => ids(b, idiv(c, k), c % k)
      const isOver = (c: number): boolean => finished(b, idiv(c, k)) > 0
      const best = topK(k, n, (c) => {
        const rank = c % k
        const missing = values(b, c) === Number.NEGATIVE_INFINITY && id(c) < 0
        const going = missing || rank >= w ? Number.NaN : scoreOf(c) + diversityRate * rank
        // A beam that has ended has one continuation, in the place of its first candidate.
        const gone = rank === 0 ? cumulative(b, idiv(c, k)) : Number.NaN
        return isOver(c) ? gone : going
      })
      const place = (i: number): number => maximum(best.indices(i), 0)
      const parent = (i: number): number => idiv(place(i), k)
      const word = (i: number): number => (isOver(place(i)) ? maximum(ends(0), 0) : id(place(i)))
      const kept = (i: number): number => (isOver(place(i)) ? cumulative(b, parent(i)) : scoreOf(place(i)))
      const last = step(0) + 1 >= maxSteps
      const isEnd = (i: number): boolean => sum(e, (x) => (ends(x) === word(i) ? 1 : 0)) > 0
      return {
        words: row(w, (i) => word(i)),
        parents: row(w, (i) => b * w + parent(i)),
        scores: row(w, (i) => (best.indices(i) < 0 ? Number.NEGATIVE_INFINITY : kept(i))),
        ended: row(w, (i) => (last || finished(b, parent(i)) > 0 || isEnd(i) ? 1 : 0)),
      }
    },
})
