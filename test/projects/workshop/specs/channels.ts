/** Columns whose reduction every element needs: each element is written in the obvious form, and the reduction runs once per column. */
import { exp, max, op, row, rsqrt, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16'] } as const

/** A softmax over the channels of images. */
export const channelSoftmax = op('channel_softmax', {
  dims: ['b', 'c', 's'],
  types,
  inputs: { x: tensor('T', 'b c s') },
  outputs: { y: tensor('T', 'b c s') },
  body:
    ({ x }, { c }) =>
    (b, channel, s) => {
      const top = max(c, (k) => x(b, k, s))
      const total = sum(c, (k) => exp(x(b, k, s) - top))
      return { y: exp(x(b, channel, s) - top) / total }
    },
})

/** A norm over the channels of images, whose values are read twice. */
export const channelNorm = op('channel_norm', {
  dims: ['b', 'c', 'h', 'w'],
  inputs: { x: tensor('f32', 'b c h w'), gamma: tensor('f32', 'c') },
  outputs: { y: tensor('f32', 'b c h w') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma }, { c, eps }) =>
    (b, channel, h, w) => {
      const v = row(c, (k) => x(b, k, h, w))
      const mean = sum(c, (k) => v(k)) / c
      const variance = sum(c, (k) => (v(k) - mean) ** 2) / c
      return { y: (v(channel) - mean) * rsqrt(variance + eps) * gamma(channel) }
    },
})

/** A batch norm by the statistics of the batch. */
export const batchNorm = op('batch_norm', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), gamma: tensor('f32', 'n'), beta: tensor('f32', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma, beta }, { m, eps }) =>
    (r, c) => {
      const mean = sum(m, (k) => x(k, c)) / m
      const variance = sum(m, (k) => (x(k, c) - mean) ** 2) / m
      const centred = x(r, c) - mean
      return { y: centred * rsqrt(variance + eps) * gamma(c) + beta(c) }
    },
})

/** A softmax down the columns of a matrix, by rows: a graph's degrees, the assignments of a clustering. */
export const columnSoftmax = op('column_softmax', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x }, { m, n }) =>
    (r) => {
      const top = row(n, (c) => max(m, (k) => x(k, c)))
      return { y: row(n, (c) => exp(x(r, c) - top(c)) / sum(m, (k) => exp(x(k, c) - top(c)))) }
    },
})
