/** Attention with scores near -10000, where float32 has a spacing of a thousandth and float16 of 8: a fully masked row has only such scores. */
import { graph, op, plan, tensor, toFloat } from 'heddle'
import { weigh } from './slopes.js'

const scores = tensor('T', 'b h q k')

/** 1 keeps, 0 does not. */
export const keepOnly = op('keep_only', {
  dims: ['b', 'h', 'q', 'k'],
  types: { T: ['f16'] },
  inputs: { x: scores, keep: tensor('i32', 'b q k') },
  outputs: { y: scores },
  attrs: { by: 0.25 },
  facts: { keep: { from: 0, to: 1 } },
  body:
    ({ x, keep }, { by }) =>
    (b, h, q, k) => ({ y: x(b, h, q, k) * by + toFloat(1 - keep(b, q, k)) * -10000 }),
})

/** The same for a mask that may be any number: every score is far from 0. */
export const keepAny = op('keep_any', {
  dims: ['b', 'h', 'q', 'k'],
  types: { T: ['f32'] },
  inputs: { x: scores, keep: tensor('T', 'b q k') },
  outputs: { y: scores },
  attrs: { by: 0.25 },
  body:
    ({ x, keep }, { by }) =>
    (b, h, q, k) => ({ y: x(b, h, q, k) * by + (1 - keep(b, q, k)) * -10000 }),
})

const given = { query: tensor('T', 'b q h d'), key: tensor('T', 'b k h d'), value: tensor('T', 'b k h e') }
const [toScores, toContext] = ['b q h d, b k h d -> b h q k', 'b h q k, b k h e -> b q h e'] as const

export const padded = graph('padded', {
  inputs: { ...given, keep: tensor('i32', 'b q k') },
  weights: {},
  build: (g, { query, key, value, keep }) => {
    const product = g.matmul(toScores, query, key)
    const kept = g.apply(keepOnly, { x: product, keep }).y
    const weights = g.apply(weigh, { x: kept }).y
    const y = g.matmul(toContext, weights, value)
    return { nodes: { product, kept, weights, y }, outputs: { y } }
  },
})

export const far = graph('far', {
  inputs: { ...given, keep: tensor('T', 'b q k') },
  weights: {},
  build: (g, { query, key, value, keep }) => {
    const product = g.matmul(toScores, query, key)
    const kept = g.apply(keepAny, { x: product, keep }).y
    const weights = g.apply(weigh, { x: kept }).y
    const y = g.matmul(toContext, weights, value)
    return { nodes: { product, kept, weights, y }, outputs: { y } }
  },
})

export const within = plan('whole', padded, { groups: { padded_attention: ['product', 'kept', 'weights', 'y'] } })
export const farWithin = plan('whole', far, { groups: { far_attention: ['product', 'kept', 'weights', 'y'] } })
