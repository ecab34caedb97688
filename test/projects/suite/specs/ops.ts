/** Ops of a feed-forward layer. */
import { maximum, op, tensor } from 'heddle'

/** Adds a bias and applies a squared ReLU. */
export const squaredRelu = op('bias_squared_relu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), bias: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: maximum(x(m, c) + bias(c), 0) ** 2 }),
})

/** Adds the residual. */
export const addResidual = op('add_residual', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), residual: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, residual }) =>
    (m, c) => ({ y: x(m, c) + residual(m, c) }),
})
