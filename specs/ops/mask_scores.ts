/**
 * Hides attention scores of padded keys: those at or beyond the length of their sequence. The hidden value is lower than
 * any score and may round to minus infinity; softmax then gives exact zeros, because every sequence has a first token.
 */
import { op, tensor } from 'heddle'

export const maskScores = op('mask_scores', {
  dims: ['b', 'h', 's', 't'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b h s t'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b h s t') },
  facts: { lengths: { from: 1, to: 't' } },
  body:
    ({ x, lengths }) =>
    (b, h, s, t) => ({ y: t < lengths(b) ? x(b, h, s, t) : -1e30 }),
})
