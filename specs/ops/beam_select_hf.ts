/**
 * Second stage of a step of beam search, by the rule of Hugging Face's `generate`: beams that end leave the running ones for a pool of the best
 * hypotheses, and running beams never end. A step considers enough candidates for as many running beams as before. Only those among the first `w` of
 * them enter the pool, at their cumulative log-probability divided by length^lengthPenalty.
 */
import { idiv, int, maximum, minimum, op, pow, row, sum, tensor, toFloat, topK } from 'heddle'
import { candidates, largestOf, normaliserOf } from './beam_scores.js'

/** Penalty of a candidate that ends, among the running beams: it ranks below all that do not end. */
const setBack = -1e9

/**
 * The beams and the pool of sequences `b` after a step. `values` and `ids` are the candidates of a sequence's beams, n = w*p*k, from
 * `beam_candidates`; `k` is at least max(2, 1 + e) * w. `step` counts the tokens before this one. Before the first, `cumulative` is 0 for the first
 * beam of a sequence and -1e9 for the others, `poolScores` are -1e9 and `poolSteps` -1, which marks an empty place of the pool.
 *
 * A hypothesis of the pool is the word `poolWords` after the beam that was row `poolRows` before step `poolSteps`; `keptScores` are in descending
 * order. `over` is 1 from the first step on after which the pool does not change. With `earlyStopping` 1 that is when the pool is full. Otherwise it
 * is when the pool is full and the best running beam is no better than the worst of the pool, at the length it has (0) or, with a positive
 * `lengthPenalty`, at the largest it may have (2). At the latest it is after `maxSteps` tokens, when every beam ends. With `normalised` 1 values are
 * log-probabilities, which were changed and need not sum to 1 any more; `tops` and `sums` are ignored then.
 */
export const beamSelectHf = op('beam_select_hf', {
  dims: ['b', 'w', 'p', 'k', 'n', 'e', 'o'],
  inputs: {
    values: tensor('f32', 'b n'),
    ids: tensor('i32', 'b w p k'),
    tops: tensor('f32', 'b w p'),
    sums: tensor('f32', 'b w p'),
    cumulative: tensor('f32', 'b w'),
    poolScores: tensor('f32', 'b w'),
    poolSteps: tensor('i32', 'b w'),
    poolRows: tensor('i32', 'b w'),
    poolWords: tensor('i32', 'b w'),
    done: tensor('i32', 'b'),
    step: tensor('i32', 'o'),
    ends: tensor('i32', 'e'),
  },
  outputs: {
    words: tensor('i32', 'b w'),
    parents: tensor('i32', 'b w'),
    scores: tensor('f32', 'b w'),
    keptScores: tensor('f32', 'b w'),
    keptSteps: tensor('i32', 'b w'),
    keptRows: tensor('i32', 'b w'),
    keptWords: tensor('i32', 'b w'),
    over: tensor('i32', 'b'),
  },
  attrs: { lengthPenalty: 1, earlyStopping: int(0), maxSteps: int(1024), normalised: int(0) },
  facts: {
    ...candidates,
    k: { atLeast: '2*w' },
    done: { from: 0, to: 1 },
    poolRows: { from: 0, to: 1000 },
    poolSteps: { from: -1, to: 2 },
    poolWords: { from: 0, to: 1000 },
    step: { from: 3, to: 9 },
    keptScores: 'exact',
    scores: 'exact',
  },
  body:
    (
      { values, ids, tops, sums, cumulative, poolScores, poolSteps, poolRows, poolWords, done, step, ends },
      { w, p, k, n, e, lengthPenalty, earlyStopping, maxSteps, normalised },
    ) =>
    (b) => {
      const partTop = (j: number, q: number): number => tops(b, minimum(j, w - 1), q)
      const partSum = (j: number, q: number): number => sums(b, minimum(j, w - 1), q)
      const top = row(k, (j) => largestOf(p, (q) => partTop(j, q)))
      const ofLogits = row(k, (j) =>
        normaliserOf(
          p,
          (q) => partTop(j, q),
          (q) => partSum(j, q),
          top(j),
        ),
      )
      const normaliser = (j: number): number => (normalised === 1 ? 0 : ofLogits(j))
      const id = (c: number): number => ids(b, idiv(c, p * k), idiv(c, k) % p, c % k)
      const best = topK(k, n, (c) => {
        const j = idiv(c, p * k)
        const x = values(b, c)
        return x === Number.NEGATIVE_INFINITY && id(c) < 0 ? Number.NaN : cumulative(b, j) + (x - normaliser(j))
      })
      const place = (i: number): number => maximum(best.indices(i), 0)
      const parent = (i: number): number => b * w + idiv(place(i), p * k)
      const word = (i: number): number => id(place(i))
      const length = step(0) + 1
      const last = length >= maxSteps
      const ending = (i: number): boolean => last || sum(e, (x) => (ends(x) === word(i) ? 1 : 0)) > 0

      const going = topK(k, k, (i) => best.values(i) + (ending(i) ? setBack : 0))
      const next = (i: number): number => maximum(going.indices(i), 0)

      const share = pow(toFloat(length), lengthPenalty)
      // The pool before the step, then the candidates that may enter it.
      const kept = topK(k, w + w, (i) =>
        i < w ? poolScores(b, i) : ending(i - w) && done(b) === 0 ? best.values(i - w) / share : Number.NEGATIVE_INFINITY,
      )
      const from = (i: number): number => maximum(kept.indices(i), 0)
      const entered = (i: number): number => maximum(from(i) - w, 0)
      const keptStep = (i: number): number => (from(i) < w ? poolSteps(b, from(i)) : step(0))

      const isFull = sum(w, (i) => (keptStep(i) >= 0 ? 1 : 0)) === w
      const longest = earlyStopping === 2 && lengthPenalty > 0 ? maxSteps : length
      const possible = going.values(0) / pow(toFloat(longest), lengthPenalty)
      const settled = isFull && (earlyStopping === 1 || possible <= kept.values(w - 1))
      return {
        words: row(w, (i) => word(next(i))),
        parents: row(w, (i) => parent(next(i))),
        scores: row(w, (i) => going.values(i)),
        keptScores: row(w, (i) => kept.values(i)),
        keptSteps: row(w, (i) => keptStep(i)),
        keptRows: row(w, (i) => (from(i) < w ? poolRows(b, from(i)) : parent(entered(i)))),
        keptWords: row(w, (i) => (from(i) < w ? poolWords(b, from(i)) : word(entered(i)))),
        over: done(b) > 0 || last || settled ? 1 : 0,
      }
    },
})
