/** One of several matrices that lie side by side in each row, such as the query of a stacked query, key and value. */
import { int, op, tensor } from 'heddle'

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
