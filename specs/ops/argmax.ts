/** Index of the largest element of each row; the lowest index among equals. */
import { argmax, op, tensor } from 'heddle'

export const argmaxRow = op('argmax', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('i32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => ({ y: argmax(n, (c) => x(m, c)) }),
})
