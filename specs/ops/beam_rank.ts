/**
 * Middle stage of a step of beam search, for a rule that counts how many words of a beam are better than one: the candidates of a row's parts become
 * one list.
 */
import { op, row, tensor, topK } from 'heddle'
import { largestOf, ofParts, sumOver } from './beam_scores.js'

/**
 * The `k` largest of the `n` = p*k candidates of rows `r` from `beam_candidates`, sorted from the largest, ties by the lower part and then the lower
 * id. The row also becomes one part: its largest logit, and the sum of exp(logit - top). If a row has fewer candidates, the rest is -Infinity with id
 * -1.
 */
export const beamRank = op('beam_rank', {
  dims: ['r', 'p', 'k', 'n'],
  inputs: {
    values: tensor('f32', 'r n'),
    ids: tensor('i32', 'r n'),
    tops: tensor('f32', 'r p'),
    sums: tensor('f32', 'r p'),
  },
  outputs: {
    best: tensor('f32', 'r k'),
    words: tensor('i32', 'r k'),
    top: tensor('f32', 'r'),
    total: tensor('f32', 'r'),
  },
  facts: { ...ofParts, n: 'p*k', best: 'exact' },
  body:
    ({ values, ids, tops, sums }, { p, k, n }) =>
    (r) => {
      const ranked = topK(k, n, (c) => (values(r, c) === Number.NEGATIVE_INFINITY && ids(r, c) < 0 ? Number.NaN : values(r, c)))
      const top = largestOf(p, (q) => tops(r, q))
      return {
        best: ranked.values,
        words: row(k, (i) => (ranked.indices(i) < 0 ? -1 : ids(r, ranked.indices(i)))),
        top,
        total: sumOver(
          p,
          (q) => tops(r, q),
          (q) => sums(r, q),
          top,
        ),
      }
    },
})
