/** Ops of the layers of the program next to it. */
import { maximum, op, row, tensor } from 'heddle'

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
export const pick = op('pick', {
  dims: ['m', 'n', 'v'],
  types: { T: ['f32', 'f16'] },
  inputs: { ids: tensor('i32', 'm'), table: tensor('T', 'v n') },
  outputs: { y: tensor('T', 'm n') },
  facts: { ids: { index: 'v' } },
  body:
    ({ ids, table }, { n }) =>
    (m) => {
      const id = ids(m)
      return { y: row(n, (c) => table(maximum(id, 0), c)) }
    },
})
export const above = op('above', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('i32', 'm n') },
  body: (i) => (m, c) => ({ y: i.x(m, c) > 0 ? 1 : 2 }),
})
