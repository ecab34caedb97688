/** Conversions between row-major and COL32: identities, and FasterTransformer v3.0's conversions between floats and int8. */
import { op, tensor } from 'heddle'
import { toInt8 } from 'heddle/std'
import { col32 } from '../layouts/matrix.js'

export const col32FromRows = op('col32_from_rows', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n', col32) },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) }),
})

export const rowsFromCol32 = op('rows_from_col32', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n', col32) },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) }),
})

export const int8Col32FromRows = op('int8_col32_from_rows', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('i8', 'm n', col32) },
  attrs: { inverse: 1 },
  facts: { inverse: { fills: 'y' } },
  body:
    ({ x }, { inverse }) =>
    (m, c) => ({ y: toInt8(x(m, c) * inverse) }),
})

export const rowsFromInt8Col32 = op('rows_from_int8_col32', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('i8', 'm n', col32) },
  outputs: { y: tensor('T', 'm n') },
  attrs: { step: 1 },
  body:
    ({ x }, { step }) =>
    (m, c) => ({ y: x(m, c) * step }),
})
