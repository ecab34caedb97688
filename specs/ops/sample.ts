/**
 * The next token of each row, drawn at random or the most likely one. A row's settings come in tensors, so that the requests of a batch may differ;
 * the host checks them. A draw depends on the seed of its row and the step alone.
 */
import { argmax, exp, max, maximum, min, op, row, scan, sum, tensor, threshold, uniform } from 'heddle'
import { isEnd } from './ends.js'

/** True if words can be chosen by a largest logit: it is NaN if any logit is, and infinite if one overflowed or no word is left. */
export const choosable = (peak: number): boolean => peak > Number.NEGATIVE_INFINITY && peak < Number.POSITIVE_INFINITY

/** Inputs that end a row: end ids, and its most tokens, which `step` counts. */
export const ending = {
  step: tensor('i32', 'o'),
  finished: tensor('i32', 'r'),
  limit: tensor('i32', 'r'),
  ends: tensor('i32', 'e'),
} as const

/** Rows that end in every way: the third token of some is the last, others may not end yet, some are finished. */
export const endings = {
  step: { values: [2] },
  finished: { values: [0, 0, 0, 1] },
  limit: { values: [3, 4] },
  o: 1,
} as const

/**
 * Requests that differ from row to row. All narrow the draw to a few words or to equals: if thousands share the probability, a random number
 * sometimes lies within a rounding of the next word's, and either is correct.
 */
export const requests = {
  temperature: { values: [1, 0.5, 2] },
  // Of several equals a whole number: if the remaining words end at a tie, roundings decide.
  topP: { values: [1, 1, 0.613, 0.613, 0.907, 0.907] },
  minP: { values: [0, 0, 0, 0, 0.05, 0.05, 0.05, 0.05] },
  seedsLow: { from: -1e9, to: 1e9 },
  seedsHigh: { from: -1e9, to: 1e9 },
} as const

export const chosen = { words: tensor('i32', 'r'), finishedAfter: tensor('i32', 'r') } as const

/** The word with which a row continues, -1 for none: the first end id once it has finished. */
export const chosenWord = (word: number, finished: number, isLast: boolean, ends: (k: number) => number, e: number) => {
  const ended = row(1, () => (isEnd(ends, e, word) ? 1 : 0))
  const done = finished !== 0
  const over = ended(0) === 1 || word < 0 || isLast
  return { words: done ? maximum(ends(0), 0) : word, finishedAfter: done || over ? 1 : 0 }
}

/**
 * The most likely word of each row; the lowest id among equals. If a logit is NaN or the largest is infinite, the word is -1, and the row finishes. A
 * finished row continues with the first end id. A row finishes with an end id or its last token, and stays finished. There is at least one end id; if
 * no word ends a row, it is one below 0, and finished rows continue with word 0.
 */
export const greedy = op('greedy', {
  dims: ['r', 'v', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), ...ending },
  outputs: chosen,
  facts: { ...endings, ends: { index: 'v', values: [0, 2] } },
  body:
    ({ logits, step, finished, limit, ends }, { v, e }) =>
    (r) => {
      const best = argmax(v, (c) => logits(r, c))
      const peak = max(v, (c) => logits(r, c))
      const word = choosable(peak) ? best : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})

/** The most likely word from the rows' parts, as `peaks` computes them: the second stage where few rows would leave a device idle. */
export const greedyOfPeaks = op('greedy_of_peaks', {
  dims: ['r', 'p', 'o', 'e'],
  inputs: { tops: tensor('f32', 'r p'), ids: tensor('i32', 'r p'), ...ending },
  outputs: chosen,
  facts: { ...endings, ids: { from: 0, to: 1000 }, ends: { from: 0, to: 1000 } },
  body:
    ({ tops, ids, step, finished, limit, ends }, { p, e }) =>
    (r) => {
      const best = argmax(p, (q) => tops(r, q))
      const peak = max(p, (q) => tops(r, q))
      const word = choosable(peak) ? ids(r, best) : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})

/**
 * A word of each row, drawn by the softmax of its logits. Temperature, top-k, top-p and min-p narrow the draw in this order, each among the words
 * left by the ones before. Words as likely as the last that remains remain too, and the most likely always do. topK 0, topP 1 and minP 0 exclude
 * nothing. The word drawn is the first at which the running sum of the weights exceeds the row's random number times their total. If a logit is NaN
 * or the largest is infinite, the word is -1. Rows end as in `greedy`.
 */
export const sample = op('sample', {
  dims: ['r', 'v', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: {
    logits: tensor('T', 'r v'),
    temperature: tensor('f32', 'r'),
    topK: tensor('i32', 'r'),
    topP: tensor('f32', 'r'),
    minP: tensor('f32', 'r'),
    seedsLow: tensor('i32', 'r'),
    seedsHigh: tensor('i32', 'r'),
    ...ending,
  },
  outputs: chosen,
  // The body sorts rows; its own tests cover long ones.
  facts: { ...endings, ...requests, topK: { values: [1, 2, 3, 4] }, ends: { index: 'v', values: [0, 2] }, v: { upTo: 1100 } },
  body:
    ({ logits, temperature, topK, topP, minP, seedsLow, seedsHigh, step, finished, limit, ends }, { v, e }) =>
    (r) => {
      const logit = row(v, (c) => logits(r, c))
      const top = argmax(v, logit)
      const peak = max(v, logit)
      const inverse = 1 / temperature(r)
      const weigh = (x: number) => exp((x - peak) * inverse)
      // Keys are the logits themselves: a computed key might be rounded differently where it is compared.
      const kth = threshold(v, topK(r) > 0 ? topK(r) : Infinity, logit, () => 1)
      const among = sum(v, (c) => (logit(c) >= kth ? weigh(logit(c)) : 0))
      const nucleus = threshold(v, topP(r) < 1 ? topP(r) * among : Infinity, logit, (c) =>
        logit(c) >= kth ? weigh(logit(c)) : 0,
      )
      const least = maximum(kth, nucleus)
      const weights = row(v, (c) => {
        const weight = weigh(logit(c))
        return logit(c) >= least && weight >= minP(r) ? weight : 0
      })
      const bar = sum(v, weights) * uniform(seedsLow(r), seedsHigh(r), step(0))
      const running = scan(v, weights)
      const found = min(v, (c) => (weights(c) > 0 && running(c) > bar ? c : v))
      // The sum and the running sum round differently: if the bar is above the end of the running sum, the last word is drawn.
      const last = max(v, (c) => (weights(c) > 0 ? c : -1))
      // With a peak that is not finite there are no weights.
      const likely = found < v ? found : last < 0 ? top : last
      const word = choosable(peak) ? likely : -1
      return chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
    },
})
