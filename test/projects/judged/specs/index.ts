/** Correct ops and graphs that a check might reject falsely: limits of float32, and results that bodies leave undefined. */
import { cos, exp, graph, idiv, int, log, max, min, op, plan, round, row, sum, tensor } from 'heddle'
import { far, farWithin, padded, within } from './padded.js'
import { steep, whole } from './slopes.js'

const types = { T: ['f32', 'f16'] } as const
const matrix = tensor('T', 'm n')

/** The angle is rounded to float32, which is a part of a turn for large angles. */
export const turn = op('turn', {
  dims: ['n', 'k'],
  inputs: { place: tensor('f32', 'n'), freq: tensor('f32', 'k') },
  outputs: { y: tensor('f32', 'n k') },
  facts: { place: { from: 0, to: 4096 }, freq: { from: 0, to: 1 } },
  body:
    ({ place, freq }) =>
    (i, j) => ({ y: cos(place(i) * freq(j)) }),
})

/** Quotients lie a hair from a half now and then. */
export const fakeQuant = op('fake_quant', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x }, { n }) =>
    (r) => {
      const step = (max(n, (c) => x(r, c)) - min(n, (c) => x(r, c)) + 1) / 255
      return { y: row(n, (c) => round(x(r, c) / step) * step) }
    },
})

/** The length of the output follows from an attribute. */
export const repeated = op('repeated', {
  dims: ['n', 'm'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'm') },
  attrs: { times: int(2) },
  facts: { m: 'n*times' },
  body:
    ({ x }, { times }) =>
    (i) => ({ y: x(idiv(i, times)) }),
})

/** Sums of all steps to come: a body that takes the square of a row's length. */
export const returns = op('returns', {
  dims: ['n'],
  inputs: { reward: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body:
    ({ reward }, { n }) =>
    (t) => ({ y: sum(n - t, (k) => reward(t + k)) }),
})

export const mask = op('mask', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix, length: tensor('i32', 'm') },
  outputs: { y: matrix },
  facts: { length: { from: 0, to: 'n' } },
  body:
    ({ x, length }) =>
    (m, c) => ({ y: c < length(m) ? x(m, c) : -Infinity }),
})

/** Softmax that is NaN for a row that is masked entirely. */
export const soft = op('soft', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix },
  outputs: { y: matrix },
  body:
    ({ x }, { n }) =>
    (m) => {
      const top = max(n, (c) => x(m, c))
      const total = sum(n, (c) => exp(x(m, c) - top))
      return { y: row(n, (c) => exp(x(m, c) - top) / total) }
    },
})

/** A float32 result of values that may be stored in a smaller type. */
export const logSum = op('log_sum', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const top = max(n, (c) => x(m, c))
      return { y: log(sum(n, (c) => exp(x(m, c) - top))) + top }
    },
})

/** Columns within reach of an integer. */
export const near = op('near', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix },
  outputs: { y: matrix },
  attrs: { reach: int(3) },
  body:
    ({ x }, { reach }) =>
    (m, c) => ({ y: c < reach ? x(m, c) : 0 }),
})

const masked = graph('masked', {
  inputs: { x: matrix, length: tensor('i32', 'm') },
  weights: {},
  build: (g, { x, length }) => {
    const kept = g.apply(mask, { x, length }).y
    const y = g.apply(soft, { x: kept }).y
    return { nodes: { kept, y }, outputs: { y } }
  },
})

const losses = graph('losses', {
  inputs: { x: tensor('T', 'm k') },
  weights: { w: tensor('T', 'n k') },
  attrs: ['reach'],
  build: (g, { x }, { w }, { reach }) => {
    const product = g.matmul('m k, n k -> m n', x, w)
    const reached = g.apply(near, { x: product }, { reach }).y
    const y = g.apply(logSum, { x: reached }).y
    return { nodes: { product, reached, y }, outputs: { y } }
  },
})

export const graphs = { masked, losses, steep, padded, far }
export const plans = [
  whole,
  within,
  farWithin,
  plan('one', masked, { groups: { soft_of_mask: ['kept', 'y'] } }),
  plan('one', losses, { groups: { near_product: ['product', 'reached'] } }),
]
