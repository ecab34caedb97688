/** The slots of a softmax in a kernel whose tensors are all declared. */
import type { Expr } from '../../ir/expr.js'
import type { SoftmaxSlots } from '../../ir/template.js'
import { rangeOf } from './masks.js'
import type { AttentionScore } from './score.js'
import type { AttentionSlots } from './slots.js'

/** @param keys number of keys @param stored the stored value */
export function softmaxSlots(slots: AttentionSlots, scored: AttentionScore, keys: Expr, stored: Expr): SoftmaxSlots {
  const { lower, upper } = rangeOf(scored, keys)
  return {
    score: slots.withAttributes(scored.score),
    range: { lower: slots.withAttributes(lower), upper: slots.withAttributes(upper) },
    denominator: slots.withAttributes(scored.denominator),
    stored: slots.withAttributes(stored),
  }
}
