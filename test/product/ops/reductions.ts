/** Ops that reduce rows of a matmul to a few numbers. */
import { argmax, argmin, exp, log, max, min, op, row, sum, tensor, topK } from 'heddle'
import { column, floats, matrix, rowValue } from './shapes.js'

const label = tensor('i32', 'm')
const place = tensor('i32', 'm')
const ofRows = { dims: ['m', 'n'], types: floats, inputs: { x: matrix } } as const

/** Cross-entropy of each row, with the log of its sum of exponentials. */
export const crossEntropy = op('cross_entropy_rows', {
  ...ofRows,
  inputs: { x: matrix, label },
  outputs: { loss: rowValue, lse: rowValue },
  body:
    ({ x, label }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const lse = top + log(sum(n, (c) => exp(v(c) - top)))
      return { loss: lse - v(label(m)), lse }
    },
})

/** The place of the largest element of each row. */
export const best = op('best_of_rows', {
  ...ofRows,
  outputs: { place },
  body:
    ({ x }, { n }) =>
    (m) => ({ place: argmax(n, (c) => x(m, c)) }),
})

/** The place of the largest element of each row of matrices. */
export const bestOfBatches = op('best_of_batch_rows', {
  dims: ['b', 'm', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'b m n') },
  outputs: { place: tensor('i32', 'b m') },
  body:
    ({ x }, { n }) =>
    (b, m) => ({ place: argmax(n, (c) => x(b, m, c)) }),
})

/** A router's first choice, with its weight and the smallest score. */
export const choice = op('choice_of_rows', {
  ...ofRows,
  inputs: { x: matrix, bias: column },
  outputs: { place, weight: rowValue, least: rowValue },
  attrs: { temperature: 0.75 },
  body:
    ({ x, bias }, { n, temperature }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp((v(c) - top) / temperature))
      const total = sum(n, (c) => e(c))
      const at = argmax(n, (c) => v(c) + bias(c))
      return { place: at, weight: e(at) / total, least: min(n, (c) => v(c)) }
    },
})

/** The nearest of the columns, by distances whose squares of the row are left out, and the number of columns below 0. */
export const nearest = op('nearest_of_rows', {
  ...ofRows,
  inputs: { x: matrix, bias: column, scale: rowValue },
  outputs: { place, below: tensor('i32', 'm'), weighted: rowValue },
  body:
    ({ x, bias, scale }, { n }) =>
    (m) => ({
      place: argmin(n, (c) => bias(c) - 2 * x(m, c)),
      below: sum(n, (c) => (x(m, c) < 0 ? 1 : 0)),
      weighted: scale(m) * sum(n, (c) => x(m, c) * bias(c)),
    }),
})

/** Sum of the shifted exponentials of some columns, whose maximum is that of the same columns. */
export const masked = op('masked_of_rows', {
  ...ofRows,
  inputs: { x: matrix, label },
  outputs: { total: rowValue },
  body:
    ({ x, label }, { n }) =>
    (m) => {
      const top = max(n, (c) => (c <= label(m) * 20 ? x(m, c) : -Infinity))
      return { total: sum(n, (c) => exp((c <= label(m) * 20 ? x(m, c) : -Infinity) - top)) }
    },
})

/** Variance of each row about its mean: no part of the row knows the mean. */
export const variance = op('variance_of_rows', {
  ...ofRows,
  outputs: { y: rowValue },
  body:
    ({ x }, { n }) =>
    (m) => {
      const mean = sum(n, (c) => x(m, c)) / n
      return { y: sum(n, (c) => (x(m, c) - mean) ** 2) }
    },
})

/** Sum of exponentials shifted by the maximum of other elements. */
export const otherShift = op('other_shift_of_rows', {
  ...ofRows,
  inputs: { x: matrix, bias: column },
  outputs: { y: rowValue },
  body:
    ({ x, bias }, { n }) =>
    (m) => {
      const top = max(n, (c) => x(m, c) + bias(c))
      return { y: sum(n, (c) => exp(x(m, c) - top)) }
    },
})

/** The element after the largest. */
export const next = op('next_of_rows', {
  ...ofRows,
  outputs: { y: rowValue },
  body:
    ({ x }, { n }) =>
    (m) => {
      const at = argmax(n, (c) => x(m, c))
      return { y: x(m, (at + 1) % n) }
    },
})

/** The number of columns above the one that is named. */
export const rank = op('rank_of_rows', {
  ...ofRows,
  inputs: { x: matrix, label },
  outputs: { y: tensor('i32', 'm') },
  body:
    ({ x, label }, { n }) =>
    (m) => ({ y: sum(n, (c) => (x(m, c) > x(m, label(m)) ? 1 : 0)) }),
})

/** Sum of the two largest elements. */
export const two = op('two_of_rows', {
  ...ofRows,
  outputs: { y: rowValue },
  body:
    ({ x }, { n }) =>
    (m) => {
      const found = topK(2, n, (c) => x(m, c))
      return { y: found.values(0) + found.values(1) }
    },
})
