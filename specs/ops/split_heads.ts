/** Moves attention heads next to each other: the identity between two layouts. */
import { op, tensor } from 'heddle'
import { splitHeads as splitHeadsLayout } from '../layouts/split_heads.js'

export const splitHeads = op('split_heads', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s h d') },
  outputs: { y: tensor('T', 'b s h d', splitHeadsLayout) },
  body:
    ({ x }) =>
    (b, s, h, d) => ({ y: x(b, s, h, d) }),
})
