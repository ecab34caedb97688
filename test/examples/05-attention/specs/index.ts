/** Attention whose scores are changed by your own ops. Any of them, in any order, becomes one kernel whose scores never reach memory. */
import { exp, type GraphBuilder, type GraphTensor, graph, int, max, op, plan, row, sum, tanh, tensor, toFloat } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const
const pairs = tensor('T', 'b h s t')

// #region scores
export const scaled = op('scaled', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { x: pairs },
  outputs: { y: pairs },
  attrs: { factor: 0.25 },
  body:
    ({ x }, { factor }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) * factor }),
})

/** Each query sees itself and the `size - 1` places before it. Keys outside are not read: the mask becomes a range. */
export const windowed = op('windowed', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { x: pairs },
  outputs: { y: pairs },
  attrs: { size: int(16) },
  body:
    ({ x }, { size }) =>
    (b, h, s, t) => ({ y: t <= s && s - t < size ? x(b, h, s, t) : -Infinity }),
})

export const capped = op('capped', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { x: pairs },
  outputs: { y: pairs },
  attrs: { cap: 20 },
  body:
    ({ x }, { cap }) =>
    (b, h, s, t) => ({ y: cap * tanh(x(b, h, s, t) / cap) }),
})

/** Attention with linear biases: distant keys count less, by one slope per head. */
export const sloped = op('sloped', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { x: pairs, slopes: tensor('f32', 'h') },
  outputs: { y: pairs },
  body:
    ({ x, slopes }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + slopes(h) * toFloat(t - s) }),
})

export const weigh = op('weigh', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { logits: pairs },
  outputs: { weights: pairs },
  body:
    ({ logits }, { t: n }) =>
    (b, h, s) => {
      const v = row(n, (t) => logits(b, h, s, t))
      const top = max(n, (t) => v(t))
      const e = row(n, (t) => exp(v(t) - top))
      const total = sum(n, (t) => e(t))
      return { weights: row(n, (t) => e(t) / total) }
    },
})
// #endregion

// #region graph
const heads = { query: tensor('T', 'b h s d'), key: tensor('T', 'b h s d'), value: tensor('T', 'b h s d') } as const
const attend = (g: GraphBuilder, weights: GraphTensor, value: GraphTensor): GraphTensor =>
  g.matmul('b h s t, b h t d -> b h s d', weights, value)

/** A window whose size is given at load. */
export const local = graph('attend_window', {
  inputs: heads,
  weights: {},
  attrs: ['window'],
  build: (g, { query, key, value }, _, { window }) => {
    const scores = g.matmul('b h s d, b h t d -> b h s t', query, key)
    const small = g.apply(scaled, { x: scores }).y
    const seen = g.apply(windowed, { x: small }, { size: window }).y
    const weights = g.apply(weigh, { logits: seen }).weights
    const y = attend(g, weights, value)
    return { nodes: { scores, small, seen, weights, y }, outputs: { y } }
  },
})

/** Slopes and a soft cap. */
export const biased = graph('attend_sloped', {
  inputs: { ...heads, slopes: tensor('f32', 'h') },
  weights: {},
  build: (g, { query, key, value, slopes }) => {
    const scores = g.matmul('b h s d, b h t d -> b h s t', query, key)
    const small = g.apply(scaled, { x: scores }).y
    const cap = g.apply(capped, { x: small }).y
    const far = g.apply(sloped, { x: cap, slopes }).y
    const weights = g.apply(weigh, { logits: far }).weights
    const y = attend(g, weights, value)
    return { nodes: { scores, small, cap, far, weights, y }, outputs: { y } }
  },
})
// #endregion

// #region plans
export const graphs = { local, biased }
export const plans = [
  plan('one-kernel', local, { groups: { window_attention: ['scores', 'small', 'seen', 'weights', 'y'] } }),
  plan('one-kernel', biased, { groups: { sloped_attention: ['scores', 'small', 'cap', 'far', 'weights', 'y'] } }),
]
// #endregion
