/** Attention of one new token to all before it: keys and values are appended to their caches in place, and the caches outlive the step. */
import { exp, graph, max, op, plan, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const
const cache = tensor('T', 'b h t d')

// #region append
/** Writes only one place; the rest of the cache is neither read nor copied. A place outside of the cache changes nothing. */
export const append = op('append', {
  dims: ['b', 'h', 't', 'd'],
  types,
  inputs: { cache, x: tensor('T', 'b h d'), places: tensor('i32', 'b') },
  outputs: { y: cache },
  updates: { y: 'cache' },
  facts: { places: { from: -1, to: 't' } },
  body:
    ({ cache, x, places }) =>
    (b, h, t, d) => ({ y: t === places(b) ? x(b, h, d) : cache(b, h, t, d) }),
})
// #endregion

// #region weigh
/** Softmax over the places up to the current one. */
export const weigh = op('weigh', {
  dims: ['b', 'h', 't'],
  types,
  inputs: { scores: tensor('T', 'b h t'), places: tensor('i32', 'b') },
  outputs: { weights: tensor('T', 'b h t') },
  attrs: { factor: 0.25 },
  facts: { places: { index: 't' } },
  body:
    ({ scores, places }, { t: n, factor }) =>
    (b, h) => {
      const v = row(n, (t) => (t <= places(b) ? scores(b, h, t) * factor : -Infinity))
      const top = max(n, (t) => v(t))
      const e = row(n, (t) => exp(v(t) - top))
      const total = sum(n, (t) => e(t))
      return { weights: row(n, (t) => e(t) / total) }
    },
})
// #endregion

// #region step
export const step = graph('decode_step', {
  inputs: {
    query: tensor('T', 'b h d'),
    key: tensor('T', 'b h d'),
    value: tensor('T', 'b h d'),
    places: tensor('i32', 'b'),
    keys: cache,
    values: cache,
  },
  weights: {},
  typical: { b: 8, t: 1024, h: 16, d: 64 },
  build: (g, { query, key, value, places, keys, values }) => {
    const allKeys = g.apply(append, { cache: keys, x: key, places }).y
    const allValues = g.apply(append, { cache: values, x: value, places }).y
    const scores = g.matmul('b h d, b h t d -> b h t', query, allKeys)
    const weights = g.apply(weigh, { scores, places }).weights
    const context = g.matmul('b h t, b h t d -> b h d', weights, allValues)
    return { nodes: { allKeys, allValues, scores, weights, context }, outputs: { context, keys: allKeys, values: allValues } }
  },
})
// #endregion

// #region plan
export const graphs = { step }
export const plans = [
  plan('one-kernel', step, { groups: { decode_attention: ['allKeys', 'allValues', 'scores', 'weights', 'context'] } }),
]
// #endregion
