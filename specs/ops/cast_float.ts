/** Rounds float32 to a model's storage type, after a part that is computed in float32 throughout. */
import { op, tensor } from 'heddle'

export const castFloat = op('cast_float', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) }),
})
