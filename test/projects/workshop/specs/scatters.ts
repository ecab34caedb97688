/** Scatter-adds: each element gathers its contributions in index order, so every run computes the same bits. */
import { argsort, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** The gradient of an embedding, added in place to that of earlier batches: row k gathers the gradients of all tokens that read it. */
export const accumulateGradient = op('accumulate_gradient', {
  dims: ['t', 'v', 'n'],
  types,
  inputs: { grad: tensor('f32', 'v n'), dy: tensor('T', 't n'), ids: tensor('i32', 't') },
  outputs: { sums: tensor('f32', 'v n') },
  updates: { sums: 'grad' },
  facts: { ids: { from: 0, to: 'v' }, v: 2 },
  body:
    ({ grad, dy, ids }, { t, n }) =>
    (k) => ({ sums: row(n, (c) => grad(k, c) + sum(t, (i) => (ids(i) === k ? dy(i, c) : 0))) }),
})

/** Counts of all numbers by value, and their summed weights. */
export const binCount = op('bin_count', {
  dims: ['t', 'bins'],
  types,
  inputs: { ids: tensor('i32', 't'), weight: tensor('T', 't') },
  outputs: { count: tensor('i32', 'bins'), weights: tensor('f32', 'bins') },
  facts: { ids: { from: -1, to: 'bins' } },
  body:
    ({ ids, weight }, { t }) =>
    (b) => ({ count: sum(t, (i) => (ids(i) === b ? 1 : 0)), weights: sum(t, (i) => (ids(i) === b ? weight(i) : 0)) }),
})

/** Writes elements to the indices of a permutation: sorting a permutation yields its inverse. */
export const putBack = op('put_back', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), key: tensor('i32', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, key }, { n }) =>
    (m) => {
      const order = argsort(300, n, (c) => key(m, c))
      const back = argsort(300, n, (c) => order(c))
      return { y: row(n, (c) => x(m, back(c))) }
    },
})
