/** Kernels that users requested from other tools and no other project has: src/docs/reference/kernels.md lists all. */
import { abs, idiv, max, maximum, minimum, op, round, row, rsqrt, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** A residual, its root mean square norm, and that in int8 with a step for each row. */
export const residualNormQuantise = op('residual_norm_quantise', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), before: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { q: tensor('i8', 'm n'), step: tensor('f32', 'm'), added: tensor('T', 'm n') },
  attrs: { eps: 1e-6 },
  body:
    ({ x, before, gamma }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c) + before(m, c))
      const scale = rsqrt(sum(n, (c) => v(c) ** 2) / n + eps)
      const normed = row(n, (c) => v(c) * scale * gamma(c))
      const step = max(n, (c) => abs(normed(c))) / 127
      const q = row(n, (c) => (step > 0 ? maximum(minimum(round(normed(c) / step), 127), -127) : 0))
      return { q, step, added: row(n, (c) => v(c)) }
    },
})

/** Group norm of images whose groups are rows: `c` consecutive channels of equal size. */
export const groupNorm = op('group_norm', {
  dims: ['b', 'g', 'c', 'n'],
  types,
  inputs: { x: tensor('T', 'b g n'), gamma: tensor('T', 'g c'), beta: tensor('T', 'g c') },
  outputs: { y: tensor('T', 'b g n') },
  attrs: { eps: 1e-5 },
  facts: { n: { atLeast: 'c' } },
  body:
    ({ x, gamma, beta }, { n, c, eps }) =>
    (b, g) => {
      const v = row(n, (i) => x(b, g, i))
      const mean = sum(n, (i) => v(i)) / n
      const scale = rsqrt(sum(n, (i) => (v(i) - mean) ** 2) / n + eps)
      return { y: row(n, (i) => (v(i) - mean) * scale * gamma(g, idiv(i * c, n)) + beta(g, idiv(i * c, n))) }
    },
})

/** Gradient of the input of a layer norm. */
export const layerNormBackward = op('layer_norm_backward', {
  dims: ['m', 'n'],
  types,
  inputs: { dy: tensor('T', 'm n'), x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { dx: tensor('T', 'm n') },
  attrs: { eps: 1e-5 },
  body:
    ({ dy, x, gamma }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c)) / n
      const scale = rsqrt(sum(n, (c) => (v(c) - mean) ** 2) / n + eps)
      const g = row(n, (c) => dy(m, c) * gamma(c))
      const direct = sum(n, (c) => g(c)) / n
      const along = sum(n, (c) => g(c) * (v(c) - mean) * scale) / n
      return { dx: row(n, (c) => scale * (g(c) - direct - (v(c) - mean) * scale * along)) }
    },
})

/** Gradient of the input of a softmax. */
export const softmaxBackward = op('softmax_backward', {
  dims: ['m', 'n'],
  types,
  inputs: { dy: tensor('T', 'm n'), y: tensor('T', 'm n') },
  outputs: { dx: tensor('T', 'm n') },
  body:
    ({ dy, y }, { n }) =>
    (m) => {
      const total = sum(n, (c) => dy(m, c) * y(m, c))
      return { dx: row(n, (c) => y(m, c) * (dy(m, c) - total)) }
    },
})

/** A causal convolution along time per channel, as at the start of state space models. */
export const causalConvolution = op('causal_convolution', {
  dims: ['b', 't', 'c', 'k'],
  types,
  inputs: { x: tensor('T', 'b t c'), weight: tensor('T', 'k c') },
  outputs: { y: tensor('T', 'b t c') },
  body:
    ({ x, weight }, { k }) =>
    (b, t, c) => ({ y: sum(k, (i) => (t - i >= 0 ? x(b, maximum(t - i, 0), c) * weight(i, c) : 0)) }),
})

/** Two weights a byte, the lower half first; values of -8 to 7 times a scale for each of `g` parts of a row. */
export const unpackInt4 = op('unpack_int4', {
  dims: ['m', 'n', 'h', 'g'],
  types,
  inputs: { packed: tensor('u8', 'm h'), scales: tensor('T', 'm g') },
  outputs: { y: tensor('T', 'm n') },
  facts: { n: '2*h', g: { atLeast: 1 } },
  body:
    ({ packed, scales }, { g, n }) =>
    (m, c) => {
      const byte = packed(m, idiv(c, 2))
      const half = c % 2 === 0 ? byte & 15 : idiv(byte, 16)
      return { y: (half - 8) * scales(m, idiv(c * g, n)) }
    },
})

/** The largest of each 2 x 2 window. */
export const maxPool = op('max_pool', {
  dims: ['b', 'c', 'h', 'w', 'p', 'q'],
  types,
  inputs: { x: tensor('T', 'b c h w') },
  outputs: { y: tensor('T', 'b c p q') },
  facts: { h: '2*p', w: '2*q' },
  body:
    ({ x }) =>
    (b, c, p, q) => ({ y: max(4, (i) => x(b, c, 2 * p + idiv(i, 2), 2 * q + (i % 2))) }),
})

/** Weighted sums of rows of a table, bag by bag: bag `b` has the places from `offsets(b)` to `offsets(b + 1)`. */
export const embeddingBag = op('embedding_bag', {
  dims: ['b', 'e', 'i', 't', 'n'],
  types,
  inputs: { table: tensor('T', 't n'), ids: tensor('i32', 'i'), weight: tensor('f32', 'i'), offsets: tensor('i32', 'e') },
  outputs: { y: tensor('T', 'b n') },
  facts: { ids: { index: 't' }, offsets: { from: 0, to: 'i', order: 'ascending' }, e: { atLeast: 'b' }, i: 37 },
  body:
    ({ table, ids, weight, offsets }, { e }) =>
    (b, c) => {
      const first = offsets(0 + b)
      const last = offsets(minimum(b + 1, e - 1))
      return { y: sum(last - first, (k) => weight(first + k) * table(ids(first + k), c)) }
    },
})
