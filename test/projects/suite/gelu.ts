/** Ops of a feed-forward layer, with an exact GELU in place of the squared ReLU: what an author tries next. */
import { erf, op, tensor } from 'heddle'

// #region gelu
/** Adds a bias and applies a GELU; the name stays, so that times can be compared. */
export const squaredRelu = op('bias_squared_relu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), bias: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, bias }) =>
    (m, c) => {
      const wide = x(m, c) + bias(c)
      return { y: (wide * (1 + erf(wide / Math.SQRT2))) / 2 }
    },
})
// #endregion

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
