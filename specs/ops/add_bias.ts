/** Adds one bias per column, as after a matmul. */
import { op, tensor } from 'heddle'

export const addBias = op('add_bias', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), bias: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: x(m, c) + bias(c) }),
})
