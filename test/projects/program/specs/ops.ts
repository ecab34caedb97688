/** What the layers of the program beside it are made of. */
import { maximum, op, tensor } from 'heddle'

export const mix = op('mix', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), product: tensor('T', 'm n'), bias: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) + maximum(i.product(m, c) + i.bias(c), 0) / 2 }),
})
export const join = op('join', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  outputs: { z: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ z: i.x(m, c) + i.y(m, c) }),
})
