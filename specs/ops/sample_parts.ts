/**
 * Draws from long rows in stages, so that few rows still fill a device. One block per part sums its weights. The draw of a word reads the sums of the
 * parts, and the logits of one part. Draws equal those of `sample`, up to rounding: weights are added part by part here, so that a random number
 * within a rounding of the next word's may draw either.
 */
import { argmax, exp, idiv, max, maximum, min, minimum, op, row, scan, sum, tensor, threshold, uniform } from 'heddle'
import { partLength } from './row_parts.js'
import { choosable, chosen, chosenWord, ending, endings, requests } from './sample.js'

/** Logits below this have probability zero, so that a part of only -Infinity has a sum of 0 and no NaN. */
const lowest = -3e38

/** Results of `weigh_parts` per part. */
const parts = { tops: tensor('f32', 'r p'), ids: tensor('i32', 'r p'), sums: tensor('f32', 'r p') } as const

const seeds = { seedsLow: tensor('i32', 'r'), seedsHigh: tensor('i32', 'r') } as const

/**
 * Rows `r` of `v` logits in `p` parts: their largest logits with their ids as in `peaks`, and sums of exp((logit - top)/temperature), where `top` is
 * the part's largest, at least -3e38. A sum is NaN if a logit is.
 */
export const weighParts = op('weigh_parts', {
  dims: ['r', 'v', 'p'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), temperature: tensor('f32', 'r') },
  outputs: parts,
  facts: { temperature: requests.temperature },
  body:
    ({ logits, temperature }, { v, p }) =>
    (r, q) => {
      const length = partLength(v, p)
      const first = q * length
      const count = minimum(length, v - first)
      const x = row(count, (c) => logits(r, first + c))
      const top = max(count, x)
      const least = maximum(top, lowest)
      const inverse = 1 / temperature(r)
      return { tops: top, ids: first + argmax(count, x), sums: sum(count, (c) => exp((x(c) - least) * inverse)) }
    },
})

/** Requests as in `sample`, and parts with any words of the row. */
const facts = {
  ...endings,
  temperature: requests.temperature,
  seedsLow: requests.seedsLow,
  seedsHigh: requests.seedsHigh,
  ids: { index: 'v' },
  sums: { from: 1, to: 2 },
  ends: { index: 'v', values: [0, 2] },
  v: { upTo: 1100 },
  // One block per row of any length: many rows take a CPU minutes.
  r: { upTo: 1000 },
} as const

/**
 * A word of each row, drawn by the softmax of its logits over the temperature, from the results of `weigh_parts` for the row's parts. The word is the
 * first at which the running sum of the weights exceeds the row's random number times their total. Rows end as in `greedy`.
 */
export const sampleParts = op('sample_parts', {
  dims: ['r', 'v', 'p', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), ...parts, temperature: tensor('f32', 'r'), ...seeds, ...ending },
  outputs: chosen,
  facts,
  body:
    ({ logits, tops, ids, sums, temperature, seedsLow, seedsHigh, step, finished, limit, ends }, { v, p, e }) =>
    (r) => {
      const top = ids(
        r,
        argmax(p, (q) => tops(r, q)),
      )
      const peak = max(p, (q) => tops(r, q))
      const inverse = 1 / temperature(r)
      const pieces = row(p, (q) => sums(r, q) * exp((tops(r, q) - peak) * inverse))
      const bar = sum(p, pieces) * uniform(seedsLow(r), seedsHigh(r), step(0))
      const reached = scan(p, pieces)
      const within = min(p, (q) => (pieces(q) > 0 && reached(q) > bar ? q : p))
      // Sums in another order round differently: if the bar is above the last of them, the last word is drawn.
      const heavy = max(p, (q) => (pieces(q) > 0 ? q : -1))
      const part = within < p ? within : maximum(heavy, 0)
      const before = sum(p, (q) => (q < part ? pieces(q) : 0))
      const left = within < p ? bar - before : Infinity

      const length = partLength(v, p)
      const first = part * length
      const weights = row(length, (c) => (first + c < v ? exp((logits(r, first + c < v ? first + c : 0) - peak) * inverse) : 0))
      const running = scan(length, weights)
      const found = min(length, (c) => (weights(c) > 0 && running(c) > left ? c : length))
      const last = max(length, (c) => (weights(c) > 0 ? c : -1))
      // With a peak that is not finite there are no weights.
      const likely = heavy < 0 || last < 0 ? top : first + (found < length ? found : last)
      const word = choosable(peak) ? likely : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})

/** Factor by which weights must exceed a share of the total, so that roundings cannot change the comparison. */
const surely = 1.0001

/**
 * A draw that top-k, top-p and min-p narrow as in `sample`. `ranked` are the `k` largest logits of each part, largest first, from `beam_candidates`;
 * `values` are the same concatenated, n = p*k. If these certainly include all remaining words, as they mostly do, only they are searched, and the
 * logits of one part; otherwise the whole row is.
 */
export const sampleNarrowed = op('sample_narrowed', {
  dims: ['r', 'v', 'p', 'k', 'n', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: {
    logits: tensor('T', 'r v'),
    ...parts,
    values: tensor('f32', 'r n'),
    ranked: tensor('f32', 'r p k'),
    temperature: tensor('f32', 'r'),
    topK: tensor('i32', 'r'),
    topP: tensor('f32', 'r'),
    minP: tensor('f32', 'r'),
    ...seeds,
    ...ending,
  },
  outputs: chosen,
  facts: { ...facts, topP: requests.topP, minP: requests.minP, topK: { values: [1, 2, 3, 4] }, n: 'p*k' },
  body:
    (
      {
        logits,
        tops,
        ids,
        sums,
        values,
        ranked,
        temperature,
        topK,
        topP,
        minP,
        seedsLow,
        seedsHigh,
        step,
        finished,
        limit,
        ends,
      },
      { v, p, k, n, e },
    ) =>
    (r) => {
      const top = ids(
        r,
        argmax(p, (q) => tops(r, q)),
      )
      const peak = max(p, (q) => tops(r, q))
      const inverse = 1 / temperature(r)
      const weigh = (x: number) => exp((x - peak) * inverse)
      const total = sum(p, (q) => sums(r, q) * weigh(tops(r, q)))
      // Words that are no candidates have logits of at most this.
      const floor = max(p, (q) => ranked(r, q, k - 1))
      const above = sum(n, (c) => (values(r, c) > floor ? 1 : 0))
      const heavy = sum(n, (c) => (values(r, c) > floor ? weigh(values(r, c)) : 0))
      const unlikely = weigh(floor) < minP(r)
      const narrow = topK(r) > 0 ? above >= topK(r) : unlikely || (topP(r) < 1 && heavy > surely * topP(r) * total)
      const few = narrow || floor === -Infinity

      const length = few ? n : v
      const logit = row(length, (c) => (few ? values(r, few ? c : 0) : logits(r, few ? 0 : c)))
      const kth = threshold(length, topK(r) > 0 ? topK(r) : Infinity, logit, () => 1)
      const counted = sum(length, (c) => (logit(c) >= kth ? weigh(logit(c)) : 0))
      const among = topK(r) > 0 || !few ? counted : total
      const nucleus = threshold(length, topP(r) < 1 ? topP(r) * among : Infinity, logit, (c) =>
        logit(c) >= kth ? weigh(logit(c)) : 0,
      )
      const least = maximum(kth, nucleus)
      const remaining = (x: number) => (x >= least && weigh(x) >= minP(r) ? weigh(x) : 0)
      const kept = row(length, (c) => remaining(logit(c)))
      const bar = sum(length, kept) * uniform(seedsLow(r), seedsHigh(r), step(0))
      const reached = scan(length, kept)
      const within = min(length, (c) => (kept(c) > 0 && reached(c) > bar ? c : length))
      const heaviest = max(length, (c) => (kept(c) > 0 ? c : -1))
      const place = within < length ? within : maximum(heaviest, 0)
      // Candidates are sorted by their logits, so the word is searched for among the logits of its part, in the order of ids.
      const part = few ? idiv(place, k) : 0
      const before = sum(length, (c) => (few && idiv(c, k) < part ? kept(c) : 0))
      const left = within < length ? bar - before : Infinity

      const size = partLength(v, p)
      const first = part * size
      const weights = row(size, (c) => (first + c < v ? remaining(logits(r, first + c < v ? first + c : 0)) : 0))
      const running = scan(size, weights)
      const found = min(size, (c) => (weights(c) > 0 && running(c) > left ? c : size))
      const last = max(size, (c) => (weights(c) > 0 ? c : -1))
      const drawn = few ? first + (found < size ? found : maximum(last, 0)) : place
      // With a peak that is not finite there are no weights.
      const likely = heaviest < 0 ? top : drawn
      const word = choosable(peak) ? likely : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})
