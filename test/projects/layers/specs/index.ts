/** Layers of families that are not shipped, each under a plan that fuses it into few kernels. */
import { graph, plan, tensor } from 'heddle'
import * as attention from './attention.js'
import * as images from './images.js'

/** A convolution and the ops after it: one kernel. */
export const convolved = graph('convolved', {
  inputs: { image: tensor('T', 'b c p q') },
  weights: { kernel: tensor('T', 'o c u v'), bias: tensor('T', 'o') },
  build: (g, { image }, { kernel, bias }) => {
    const sums = g.apply(images.convolve, { x: image, kernel }, {}, { h: 'h', w: 'w' }).y
    const passed = g.apply(images.biasClipped, { x: sums, bias }).y
    return { nodes: { sums, passed }, outputs: { passed } }
  },
})

/** Attention whose table of biases has an extent that its op states. */
export const byDistance = graph('by_distance', {
  inputs: { query: tensor('T', 'b h q d'), key: tensor('T', 'b h k d'), value: tensor('T', 'b h k e') },
  weights: { bias: tensor('f32', 'n h') },
  build: (g, { query, key, value }, { bias }) => {
    const products = g.matmul('b h q d, b h k d -> b h q k', query, key)
    const scores = g.apply(attention.bucketed, { scores: products, bias }).y
    const { weights } = g.apply(attention.weigh, { scores: g.view(scores, 'b*h*q k') })
    const mixed = g.matmul('b h q k, b h k e -> b q h e', g.view(weights, 'b h q k'), value)
    return { nodes: { products, scores, weights, mixed }, outputs: { mixed } }
  },
})

/** Two attentions over the same values, by one kernel: of tensors called otherwise. */
export const difference = graph('difference', {
  inputs: {
    query: tensor('T', 'b s h d'),
    key: tensor('T', 'b s h d'),
    otherQuery: tensor('T', 'b s h d'),
    otherKey: tensor('T', 'b s h d'),
    value: tensor('T', 'b s h e'),
  },
  weights: { share: tensor('f32', 'h') },
  build: (g, { query, key, otherQuery, otherKey, value }, { share }) => {
    const scores = g.matmul('b s h d, b t h d -> b h s t', query, key)
    const { weights } = g.apply(attention.weigh, { scores: g.view(scores, 'b*h*s s') })
    const first = g.matmul('b h s t, b t h e -> b s h e', g.view(weights, 'b h s s'), value)
    const otherScores = g.matmul('b s h d, b t h d -> b h s t', otherQuery, otherKey)
    const { weights: otherWeights } = g.apply(attention.weigh, { scores: g.view(otherScores, 'b*h*s s') })
    const second = g.matmul('b h s t, b t h e -> b s h e', g.view(otherWeights, 'b h s s'), value)
    const { y } = g.apply(attention.lessShare, { first, second, share })
    const nodes = { scores, weights, first, otherScores, otherWeights, second, y }
    return { nodes, outputs: { y } }
  },
})

export const graphs = { convolved, byDistance, difference }
export const plans = [
  plan('fused', convolved, { groups: { convolve_bias_clipped: ['sums', 'passed'] } }),
  plan('fused', byDistance, { groups: { attend_by_distance: ['products', 'scores', 'weights', 'mixed'] } }),
  plan('fused', difference, {
    groups: {
      attend: [
        ['scores', 'weights', 'first'],
        ['otherScores', 'otherWeights', 'second'],
      ],
    },
  }),
]
