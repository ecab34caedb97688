/** Reductions across rows: kernels for training, each with the obvious body. */
import { argmax, max, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** The sum of every column: the gradient of a bias. */
export const columnSum = op('column_total', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'n') },
  body:
    ({ x }, { m }) =>
    (c) => ({ y: sum(m, (r) => x(r, c)) }),
})

/** Gradients of gamma and beta of a layer norm, from rows with stored mean and inverse deviation. */
export const normBackward = op('norm_backward', {
  dims: ['m', 'n'],
  types,
  inputs: { dy: tensor('T', 'm n'), x: tensor('T', 'm n'), mean: tensor('f32', 'm'), inverse: tensor('f32', 'm') },
  outputs: { dgamma: tensor('T', 'n'), dbeta: tensor('T', 'n') },
  body:
    ({ dy, x, mean, inverse }, { m, n }) =>
    () => ({
      dgamma: row(n, (c) => sum(m, (r) => dy(r, c) * (x(r, c) - mean(r)) * inverse(r))),
      dbeta: row(n, (c) => sum(m, (r) => dy(r, c))),
    }),
})

/** Mean and variance of every column of each matrix: a second pass over the rows uses the means of the first. */
export const columnMoments = op('column_moments', {
  dims: ['b', 'm', 'n'],
  types,
  inputs: { x: tensor('T', 'b m n') },
  outputs: { mean: tensor('f32', 'b n'), variance: tensor('f32', 'b n') },
  body:
    ({ x }, { m }) =>
    (i, c) => {
      const mean = sum(m, (r) => x(i, r, c)) / m
      return { mean, variance: sum(m, (r) => (x(i, r, c) - mean) ** 2) / m }
    },
})

/** The maximum of every column and its row; rows from `count` on are ignored. */
export const columnLargest = op('column_largest', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), count: tensor('i32', '') },
  outputs: { most: tensor('T', 'n'), at: tensor('i32', 'n') },
  facts: { count: { from: 1, to: 'm' } },
  body:
    ({ x, count }, { m }) =>
    (c) => ({
      most: max(m, (r) => (r < count() ? x(r, c) : -Infinity)),
      at: argmax(m, (r) => (r < count() ? x(r, c) : -Infinity)),
    }),
})
