/**
 * Attention with slopes so steep that scores are a hundred times as large as the matmuls to which they are added: a rounding of a score is as large
 * relative to a weight.
 */
import { abs, exp, graph, max, op, plan, row, sum, tensor, toFloat } from 'heddle'

const types = { T: ['f32'] } as const
const scores = tensor('T', 'b h q k')

export const slope = op('slope', {
  dims: ['b', 'h', 'q', 'k'],
  types,
  inputs: { x: scores, tilt: tensor('f32', 'h') },
  outputs: { y: scores },
  attrs: { by: 0.4 },
  body:
    ({ x, tilt }, { by }) =>
    (b, h, q, k) => ({ y: x(b, h, q, k) * by - tilt(h) * toFloat(abs(k - q)) }),
})

export const weigh = op('weigh', {
  dims: ['b', 'h', 'q', 'k'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: scores },
  outputs: { y: scores },
  body:
    ({ x }, { k: n }) =>
    (b, h, q) => {
      const top = max(n, (c) => x(b, h, q, c))
      const total = sum(n, (c) => exp(x(b, h, q, c) - top))
      return { y: row(n, (c) => exp(x(b, h, q, c) - top) / total) }
    },
})

export const steep = graph('steep', {
  inputs: { query: tensor('T', 'b q h d'), key: tensor('T', 'b k h d'), value: tensor('T', 'b k h e'), tilt: tensor('f32', 'h') },
  weights: {},
  build: (g, { query, key, value, tilt }) => {
    const product = g.matmul('b q h d, b k h d -> b h q k', query, key)
    const tilted = g.apply(slope, { x: product, tilt }).y
    const weights = g.apply(weigh, { x: tilted }).y
    const y = g.matmul('b h q k, b k h e -> b q h e', weights, value)
    return { nodes: { product, tilted, weights, y }, outputs: { y } }
  },
})

export const whole = plan('whole', steep, { groups: { steep_attention: ['product', 'tilted', 'weights', 'y'] } })
