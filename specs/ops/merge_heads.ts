/** Puts the heads of a token next to each other again: the identity between two layouts, the inverse of `split_heads`. */
import { op, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'

export const mergeHeads = op('merge_heads', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s h d', splitHeads) },
  outputs: { y: tensor('T', 'b s h d') },
  body:
    ({ x }) =>
    (b, s, h, d) => ({ y: x(b, s, h, d) }),
})
