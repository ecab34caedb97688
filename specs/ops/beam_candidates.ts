/**
 * First stage of a step of beam search: each row of logits is divided into parts, so that few rows still fill a device. One pass over the logits
 * gives the largest logits of every part with their ids, and the statistics for the row's log-softmax.
 */
import { exp, maximum, minimum, op, row, sum, tensor, topK } from 'heddle'
import { partLength } from './row_parts.js'

/** Logits below this have probability zero, so that a part of only -Infinity has a sum of 0 and no NaN. */
const lowest = -3e38

/**
 * Rows `r` of `v` logits in `p` parts of equal length; the last ones are shorter or empty. `values` are sorted from the largest, ties by the lowest
 * id. If a part has fewer than `k` logits that are numbers, the rest is -Infinity with id -1. `sums` are of exp(logit - top), where `tops` is the
 * part's largest logit, at least -3e38.
 */
export const beamCandidates = op('beam_candidates', {
  dims: ['r', 'v', 'p', 'k'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v') },
  outputs: {
    values: tensor('f32', 'r p k'),
    ids: tensor('i32', 'r p k'),
    tops: tensor('f32', 'r p'),
    sums: tensor('f32', 'r p'),
  },
  facts: { v: { swept: true } },
  body:
    ({ logits }, { v, p, k }) =>
    (r, q) => {
      const length = partLength(v, p)
      const first = q * length
      const count = minimum(length, v - first)
      const x = row(count, (c) => logits(r, first + c))
      const best = topK(k, count, (c) => x(c))
      const top = maximum(best.values(0), lowest)
      return {
        values: best.values,
        ids: row(k, (i) => (best.indices(i) < 0 ? -1 : first + best.indices(i))),
        tops: top,
        sums: sum(count, (c) => exp(x(c) - top)),
      }
    },
})
