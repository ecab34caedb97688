/** Ops as a user of heddle would write them, none of them among the shipped ones: other dimensions, several results, 8-bit integers. */
import { abs, max, maximum, minimum, op, round, row, rsqrt, sum, tensor } from 'heddle'

const floats = ['f32', 'f16', 'bf16'] as const

/** Root mean square normalisation (Zhang, Sennrich 2019). */
export const rmsNorm = op('rms_norm', {
  dims: ['t', 'k'],
  types: { T: floats },
  inputs: { x: tensor('T', 't k'), gamma: tensor('T', 'k') },
  outputs: { y: tensor('T', 't k') },
  attrs: { eps: 1e-6 },
  body:
    ({ x, gamma }, { k, eps }) =>
    (t) => {
      const v = row(k, (c) => x(t, c))
      const power = sum(k, (c) => v(c) ** 2) / k
      return { y: row(k, (c) => v(c) * rsqrt(power + eps) * gamma(c)) }
    },
})

/** Rows in int8, and the scale of each. */
export const quantiseRows = op('quantise_rows', {
  dims: ['t', 'k'],
  types: { T: floats },
  inputs: { x: tensor('T', 't k') },
  outputs: { q: tensor('i8', 't k'), step: tensor('f32', 't') },
  body:
    ({ x }, { k }) =>
    (t) => {
      const most = max(k, (c) => abs(x(t, c)))
      const step = most / 127
      return { q: row(k, (c) => (step > 0 ? maximum(minimum(round(x(t, c) / step), 127), -127) : 0)), step }
    },
})

/** Writes a row into a table at an index from a tensor; the rest of the table does not change. */
export const putRow = op('put_row', {
  dims: ['v', 'k', 'one'],
  types: { T: floats },
  inputs: { table: tensor('T', 'v k'), x: tensor('T', 'k'), place: tensor('i32', 'one') },
  facts: { place: { index: 'v' }, one: 1 },
  outputs: { y: tensor('T', 'v k') },
  updates: { y: 'table' },
  body:
    ({ table, x, place }) =>
    (v, c) => ({ y: v === place(0) ? x(c) : table(v, c) }),
})

/** Rows of a table by unchecked number: the device reports those out of bounds. */
export const takeRows = op('take_rows', {
  dims: ['t', 'v', 'k'],
  types: { T: floats },
  inputs: { rows: tensor('i32', 't'), table: tensor('T', 'v k') },
  outputs: { y: tensor('T', 't k') },
  body:
    ({ rows, table }) =>
    (t, c) => ({ y: table(rows(t), c) }),
})

/** The same value in every column: a dimension that only the result has. */
export const repeatColumns = op('repeat_columns', {
  dims: ['t', 'k'],
  types: { T: floats },
  inputs: { x: tensor('T', 't') },
  outputs: { y: tensor('T', 't k') },
  body:
    ({ x }) =>
    (t, _c) => ({ y: x(t) }),
})

export const addRowBias = op('add_row_bias', {
  dims: ['t', 'f'],
  types: { T: floats },
  inputs: { x: tensor('T', 't f'), bias: tensor('T', 'f') },
  outputs: { y: tensor('T', 't f') },
  body:
    ({ x, bias }) =>
    (t, c) => ({ y: x(t, c) + bias(c) }),
})

/** Squared ReLU (So et al. 2021). */
export const squaredRelu = op('squared_relu', {
  dims: ['t', 'f'],
  types: { T: floats },
  inputs: { x: tensor('T', 't f') },
  outputs: { y: tensor('T', 't f') },
  body:
    ({ x }) =>
    (t, c) => ({ y: maximum(x(t, c), 0) ** 2 }),
})

export const addRows = op('add_rows', {
  dims: ['t', 'k'],
  types: { T: floats },
  inputs: { x: tensor('T', 't k'), residual: tensor('T', 't k') },
  outputs: { y: tensor('T', 't k') },
  body:
    ({ x, residual }) =>
    (t, c) => ({ y: x(t, c) + residual(t, c) }),
})
