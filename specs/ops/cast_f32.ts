/** Widens to float32, for results that leave the device. */
import { op, tensor } from 'heddle'

export const castF32 = op('cast_f32', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) }),
})
