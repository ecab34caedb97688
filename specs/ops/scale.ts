/** Multiplies by one number, such as 1/sqrt(headDim) in attention. */
import { op, tensor } from 'heddle'

export const scale = op('scale', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { factor: 0.125 },
  body:
    ({ x }, { factor }) =>
    (m, c) => ({ y: x(m, c) * factor }),
})
