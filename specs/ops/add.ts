/** The sum of two tensors: a residual connection, or word plus type embeddings. */
import { op, tensor } from 'heddle'

export const add = op('add', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  outputs: { z: tensor('T', 'm n') },
  body:
    ({ x, y }) =>
    (m, c) => ({ z: x(m, c) + y(m, c) }),
})
