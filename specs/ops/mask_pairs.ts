/**
 * Hides attention scores of pairs of a query and a key that a mask excludes, and of padded keys. A key beyond the length of its sequence is hidden as
 * in `mask_scores`. An excluded pair gets the lowest number of float16, for every storage type. It is below the scores of any model, so that its
 * weight is exactly zero. It is finite, so that a query that may attend nothing gets the mean of the sequence's values, as in PyTorch under a mask of
 * finite numbers.
 */
import { op, tensor } from 'heddle'

/** `mask(b, s, t)` is true if query s attends key t. */
export const maskPairs = op('mask_pairs', {
  dims: ['b', 'h', 's', 't'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b h s t'), lengths: tensor('i32', 'b'), mask: tensor('bool', 'b s t') },
  outputs: { y: tensor('T', 'b h s t') },
  facts: { lengths: { from: 1, to: 't' } },
  body:
    ({ x, lengths, mask }) =>
    (b, h, s, t) => ({ y: t < lengths(b) ? (mask(b, s, t) ? x(b, h, s, t) : -65504) : -1e30 }),
})
