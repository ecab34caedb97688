/** The tokens of each sequence in another order, or some of them: row `j` of sequence `b` is its token `order(b, j)`. */
import { op, tensor } from 'heddle'

export const takeTokens = op('take_tokens', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), order: tensor('i32', 'b s') },
  outputs: { y: tensor('T', 'b s n') },
  facts: { order: { index: 's' } },
  body:
    ({ x, order }) =>
    (b, s, n) => ({ y: x(b, order(b, s), n) }),
})
