/** Gated inner networks (Shazeer 2020): one matmul's result scales the other's. */
import { op, tensor } from 'heddle'
import { sigmoidWeighted } from './activations.js'

export const swiglu = op('swiglu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { gate: tensor('T', 'm n'), up: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ gate, up }) =>
    (m, c) => ({ y: sigmoidWeighted(gate(m, c)) * up(m, c) }),
})
