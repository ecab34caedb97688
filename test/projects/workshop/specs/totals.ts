/** Reductions of whole tensors: several blocks divide one pass. */
import { abs, argmax, idiv, max, minimum, monoid, op, sqrt, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Factor of clipping by a global norm, the norm, and the largest magnitude. */
export const gradientNorm = op('gradient_norm', {
  dims: ['m', 'n'],
  types,
  inputs: { g: tensor('T', 'm n'), loss: tensor('f32', '') },
  outputs: { scale: tensor('f32', ''), norm: tensor('f32', ''), top: tensor('T', '') },
  attrs: { most: 1 },
  facts: { loss: { from: 0.5, to: 2 } },
  body:
    ({ g, loss }, { m, n, most }) =>
    () => {
      const unit = 1 / loss()
      const norm = sqrt(sum(m, (r) => sum(n, (c) => (g(r, c) * unit) ** 2)))
      return { scale: minimum(1, most / (norm + 1e-6)), norm, top: max(m, (r) => max(n, (c) => abs(g(r, c)))) }
    },
})

/** Mean and mean square of each channel of a batch of images: statistics for a batch norm. */
export const channelMoments = op('channel_moments', {
  dims: ['b', 'k', 'h', 'w'],
  types,
  inputs: { x: tensor('T', 'b k h w') },
  outputs: { mean: tensor('f32', 'k'), square: tensor('f32', 'k') },
  facts: { b: { atLeast: 1 }, h: { atLeast: 1 }, w: { atLeast: 1 } },
  body:
    ({ x }, { b, h, w }) =>
    (k) => ({
      mean: sum(b, (i) => sum(h, (j) => sum(w, (c) => x(i, k, j, c)))) / (b * h * w),
      square: sum(b, (i) => sum(h, (j) => sum(w, (c) => x(i, k, j, c) ** 2))) / (b * h * w),
    }),
})

const spread = monoid({
  identity: { count: 0, mean: 0, squares: 0 },
  combine: (x, y) => {
    const count = x.count + y.count
    const share = count > 0 ? y.count / count : 0
    const delta = y.mean - x.mean
    return { count, mean: x.mean + delta * share, squares: x.squares + y.squares + delta * delta * x.count * share }
  },
})

/** Variance of all elements in one pass of a computed length. */
export const tensorVariance = op('tensor_variance', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { variance: tensor('f32', '') },
  facts: { m: { atLeast: 1 }, n: { atLeast: 1 } },
  body:
    ({ x }, { m, n }) =>
    () => ({ variance: spread.reduce(m * n, (i) => ({ count: 1, mean: x(idiv(i, n), i % n), squares: 0 })).squares / (m * n) }),
})

/** The largest element of a vector, and its place. */
export const largestOf = op('largest_of', {
  dims: ['n'],
  types,
  inputs: { x: tensor('T', 'n') },
  outputs: { most: tensor('T', ''), at: tensor('i32', '') },
  body:
    ({ x }, { n }) =>
    () => ({ most: max(n, (c) => x(c)), at: argmax(n, (c) => x(c)) }),
})
