/** Monoids of several fields: recurrences as scans, and statistics from one pass over a row. */
import { abs, exp, int, log, maximum, monoid, op, row, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** h = a h + b, part by part. */
const linear = monoid({
  identity: { a: 1, b: 0 },
  combine: (x, y) => ({ a: x.a * y.a, b: x.b * y.a + y.b }),
})

/** The linear recurrence of a state space model: `h(t) = a(t) h(t - 1) + b(t)`. */
export const recurrence = op('recurrence', {
  dims: ['m', 'n'],
  types,
  inputs: { a: tensor('T', 'm n'), b: tensor('T', 'm n') },
  outputs: { h: tensor('f32', 'm n') },
  facts: { a: { from: 0, to: 1 } },
  body:
    ({ a, b }, { n }) =>
    (m) => {
      const h = linear.scan(n, (t) => ({ a: a(m, t), b: b(m, t) }))
      return { h: row(n, (t) => h.b(t)) }
    },
})

/** A sum that restarts at each segment. */
const segmented = monoid({
  identity: { starts: int(0), sum: 0 },
  combine: (x, y) => ({ starts: x.starts | y.starts, sum: y.starts !== 0 ? y.sum : x.sum + y.sum }),
})

export const segmentSums = op('segment_sums', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), segment: tensor('i32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  facts: { segment: { values: [0, 0, 0, 1] } },
  body:
    ({ x, segment }, { n }) =>
    (m) => {
      const sums = segmented.scan(n, (c) => ({ starts: segment(m, c) !== 0 ? 1 : 0, sum: x(m, c) }))
      return { y: row(n, (c) => sums.sum(c)) }
    },
})

/** The largest magnitude with its sign and its place; among equals the first. */
const largest = monoid({
  identity: { value: 0, at: int(2147483647) },
  combine: (x, y) => {
    const isLater = abs(y.value) > abs(x.value) || (abs(y.value) === abs(x.value) && y.at < x.at)
    return { value: isLater ? y.value : x.value, at: isLater ? y.at : x.at }
  },
})

export const absLargest = op('abs_largest', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { most: tensor('T', 'm'), at: tensor('i32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const best = largest.reduce(n, (c) => ({ value: x(m, c), at: c }))
      return { most: best.value, at: best.at }
    },
})

/** The logarithm of a sum of exponentials: the largest exponent, and the sum of the others relative to it. */
const logSumExp = monoid({
  identity: { top: -Infinity, sum: 0 },
  combine: (x, y) => {
    const top = maximum(x.top, y.top)
    const of = (sum: number, own: number): number => (own === top ? sum : sum * exp(own - top))
    return { top, sum: of(x.sum, x.top) + of(y.sum, y.top) }
  },
})

export const rowLogSum = op('row_log_sum', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const all = logSumExp.reduce(n, (c) => ({ top: x(m, c), sum: 1 }))
      return { y: log(all.sum) + all.top }
    },
})

/** Number, mean and sum of squared deviations of parts (Chan's form of Welford's). */
const welford = monoid({
  identity: { count: 0, mean: 0, squares: 0 },
  combine: (x, y) => {
    const count = x.count + y.count
    const share = count > 0 ? y.count / count : 0
    const delta = y.mean - x.mean
    return { count, mean: x.mean + delta * share, squares: x.squares + y.squares + delta * delta * x.count * share }
  },
})

export const rowMoments = op('row_moments', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { mean: tensor('f32', 'm'), variance: tensor('f32', 'm') },
  facts: { n: { atLeast: 1 } },
  body:
    ({ x }, { n }) =>
    (m) => {
      const moments = welford.reduce(n, (c) => ({ count: 1, mean: x(m, c), squares: 0 }))
      return { mean: moments.mean, variance: moments.squares / n }
    },
})
