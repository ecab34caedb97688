/** Slices of the result of a stack, such as the query of a stacked query, key and value. */
import { int, op, tensor } from 'heddle'

/** Selects one of several matrices of the same shape that lie side by side in each row. */
export const take = op('std.take', {
  dims: ['m', 'j', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm j n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { part: int(0) },
  body:
    ({ x }, { part }) =>
    (m, c) => ({ y: x(m, part, c) }),
})

/** Selects consecutive vectors, from `first` on, of those that lie side by side in each row. */
export const takeRange = op('std.take_range', {
  dims: ['m', 'j', 'i', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm j n') },
  outputs: { y: tensor('T', 'm i n') },
  attrs: { first: int(1) },
  facts: { j: { atLeast: 'first+i' } },
  body:
    ({ x }, { first }) =>
    (m, i, c) => ({ y: x(m, first + i, c) }),
})
