/**
 * FasterTransformer's attention mask: it adds `value` to the scores of pairs that a mask excludes. A query whose pairs are all excluded therefore weighs
 * them by their scores, as if none were. A key beyond the length of its sequence is hidden as in `mask_scores`: it may have been removed.
 */
import { op, tensor } from 'heddle'

/** `mask(b, s, t)` is true if query s attends key t. */
export const maskAdded = op('mask_added', {
  dims: ['b', 'h', 's', 't'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b h s t'), lengths: tensor('i32', 'b'), mask: tensor('bool', 'b s t') },
  outputs: { y: tensor('T', 'b h s t') },
  attrs: { value: -10_000 },
  facts: { lengths: { from: 1, to: 't' } },
  body:
    ({ x, lengths, mask }, { value }) =>
    (b, h, s, t) => ({ y: t < lengths(b) ? (mask(b, s, t) ? x(b, h, s, t) : x(b, h, s, t) + value) : -1e30 }),
})
