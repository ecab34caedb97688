/**
 * The next token of each row, drawn from a few of its likeliest words: the second stage of a top-k draw, after `beam_candidates`. Rows end as in
 * `greedy`.
 */
import { exp, idiv, max, maximum, min, op, row, scan, sum, tensor, topK, uniform } from 'heddle'
import { choosable, chosenWord, endings, requests } from './sample.js'

/**
 * A word of each row, drawn by the softmax of its logits among the `count` largest; of equals, those with the lowest ids. `values` and `ids` are the
 * candidates of a row's parts, n = p*k, from `beam_candidates`; `count` is from 1 to `k`. Top-p and min-p narrow the draw further, in this order.
 * From the likeliest on, the fewest words remain that together reach `topP`, and of them those that are at least `minP` times as likely as the first.
 * topP 1 and minP 0 exclude nothing. Words are sorted by their logits: the word drawn is the first at which the running sum of the weights exceeds
 * the row's random number times their total. If no logit is a number, or the largest is infinite, the word is -1.
 */
export const sampleCandidates = op('sample_candidates', {
  dims: ['r', 'n', 'p', 'k', 'o', 'e'],
  inputs: {
    values: tensor('f32', 'r n'),
    ids: tensor('i32', 'r p k'),
    temperature: tensor('f32', 'r'),
    count: tensor('i32', 'r'),
    topP: tensor('f32', 'r'),
    minP: tensor('f32', 'r'),
    seedsLow: tensor('i32', 'r'),
    seedsHigh: tensor('i32', 'r'),
    step: tensor('i32', 'o'),
    finished: tensor('i32', 'r'),
    limit: tensor('i32', 'r'),
    ends: tensor('i32', 'e'),
  },
  outputs: { words: tensor('i32', 'r'), finishedAfter: tensor('i32', 'r') },
  facts: {
    ...endings,
    ...requests,
    n: 'p*k',
    p: { swept: true, upTo: 66 },
    ids: { from: -1, to: 1000 },
    count: { from: 1, to: 'k' },
    ends: { from: 0, to: 1000 },
  },
  body:
    ({ values, ids, temperature, count, topP, minP, seedsLow, seedsHigh, step, finished, limit, ends }, { n, k, e }) =>
    (r) => {
      const best = topK(k, n, (c) => values(r, c))
      const inverse = 1 / temperature(r)
      const weights = row(k, (i) => (i < count(r) && best.indices(i) >= 0 ? exp((best.values(i) - best.values(0)) * inverse) : 0))
      const total = sum(k, weights)
      const reach = topP(r) < 1 ? topP(r) * total : Infinity
      const among = scan(k, weights)
      const kept = row(k, (i) => (among(i) - weights(i) < reach && weights(i) >= minP(r) ? weights(i) : 0))
      const bar = sum(k, kept) * uniform(seedsLow(r), seedsHigh(r), step(0))
      const running = scan(k, kept)
      const found = min(k, (i) => (kept(i) > 0 && running(i) > bar ? i : k))
      // The sum and the running sum round differently: if the bar is above the end of the running sum, the last word is drawn.
      const last = max(k, (i) => (kept(i) > 0 ? i : 0))
      const place = maximum(best.indices(found < k ? found : last), 0)
      const word = choosable(best.values(0)) ? ids(r, idiv(place, k), place % k) : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})
