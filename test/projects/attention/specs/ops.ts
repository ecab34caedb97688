/** Ops between, before and after the two matmuls of attention, in graphs that are not shipped. */
import { abs, cos, exp, idiv, int, log, max, maximum, minimum, op, row, rsqrt, sin, sum, tanh, tensor, toFloat } from 'heddle'

const floats = ['f32', 'f16', 'bf16'] as const
const scores = { x: tensor('T', 'b h s t') }
const masked = { y: tensor('T', 'b h s t') }

/** An op on scores that depends on the pair alone. */
export const scaled = op('scaled', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  attrs: { factor: 0.125 },
  body:
    ({ x }, { factor }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) * factor }),
})

export const causal = op('causal', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  body:
    ({ x }) =>
    (b, h, s, t) => ({ y: t <= s ? x(b, h, s, t) : -1e30 }),
})

export const hiddenFuture = op('hidden_future', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  body:
    ({ x }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + (t > s ? -Infinity : 0) }),
})

export const slidingWindow = op('sliding_window', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  attrs: { size: int(3) },
  body:
    ({ x }, { size }) =>
    (b, h, s, t) => ({ y: t <= s && s - t < size ? x(b, h, s, t) : -1e30 }),
})

export const dilatedWindow = op('dilated_window', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  attrs: { size: int(6) },
  body:
    ({ x }, { size }) =>
    (b, h, s, t) => ({ y: abs(s - t) < size && (s - t) % 2 === 0 ? x(b, h, s, t) : -1e30 }),
})

export const alibi = op('alibi', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, slopes: tensor('f32', 'h') },
  outputs: masked,
  body:
    ({ x, slopes }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + slopes(h) * toFloat(t - s) }),
})

export const relativeBias = op('relative_bias', {
  dims: ['b', 'h', 's', 't', 'r'],
  types: { T: floats },
  inputs: { ...scores, bias: tensor('T', 'h r') },
  outputs: masked,
  body:
    ({ x, bias }, { r }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + bias(h, maximum(minimum(t - s + idiv(r, 2), r - 1), 0)) }),
})

export const softCap = op('soft_cap', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  attrs: { cap: 20 },
  body:
    ({ x }, { cap }) =>
    (b, h, s, t) => ({ y: cap * tanh(x(b, h, s, t) / cap) }),
})

export const documents = op('documents', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, own: tensor('i32', 'b s'), other: tensor('i32', 'b t') },
  facts: { own: { from: 0, to: 2 }, other: { from: 0, to: 2 } },
  outputs: masked,
  body:
    ({ x, own, other }) =>
    (b, h, s, t) => ({ y: own(b, s) === other(b, t) ? x(b, h, s, t) : -1e30 }),
})

export const prefixMask = op('prefix_mask', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, prefix: tensor('i32', 'b') },
  facts: { prefix: { from: 0, to: 't' } },
  outputs: masked,
  body:
    ({ x, prefix }) =>
    (b, h, s, t) => ({ y: t <= s || t < prefix(b) ? x(b, h, s, t) : -1e30 }),
})

export const neighbourhood = op('neighbourhood', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: scores,
  outputs: masked,
  attrs: { reach: int(1) },
  body:
    ({ x }, { reach }) =>
    (b, h, s, t) => ({
      y: abs(idiv(s, 16) - idiv(t, 16)) <= reach && abs((s % 16) - (t % 16)) <= reach ? x(b, h, s, t) : -1e30,
    }),
})

export const denseMask = op('dense_mask', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, mask: tensor('T', 'b s t') },
  outputs: masked,
  body:
    ({ x, mask }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + mask(b, s, t) }),
})

/** The mask of the shipped encoder layers, which read a byte for each pair. */
export const keptPairs = op('kept_pairs', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, kept: tensor('bool', 'b s t') },
  outputs: masked,
  body:
    ({ x, kept }) =>
    (b, h, s, t) => ({ y: kept(b, s, t) ? x(b, h, s, t) : -65504 }),
})

export const pairBias = op('pair_bias', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, bias: tensor('T', 'h s t') },
  outputs: masked,
  body:
    ({ x, bias }) =>
    (b, h, s, t) => ({ y: x(b, h, s, t) + bias(h, s, t) }),
})

export const ragged = op('ragged', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { ...scores, lengths: tensor('i32', 'b') },
  facts: { lengths: { from: 1, to: 't' } },
  outputs: masked,
  body:
    ({ x, lengths }) =>
    (b, h, s, t) => ({ y: t < lengths(b) ? x(b, h, s, t) : -1e30 }),
})

/** Softmax under another name, with other names for its inputs and outputs. */
export const weigh = op('weigh', {
  dims: ['m', 'n'],
  types: { T: floats },
  inputs: { logits: tensor('T', 'm n') },
  outputs: { weights: tensor('T', 'm n') },
  body:
    ({ logits }, { n }) =>
    (m) => {
      const v = row(n, (c) => logits(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c))
      return { weights: row(n, (c) => e(c) / total) }
    },
})

/** Softmax with a sink per head: a key with a score and no value. */
export const weighWithSink = op('weigh_with_sink', {
  dims: ['b', 'h', 's', 't'],
  types: { T: floats },
  inputs: { logits: tensor('T', 'b h s t'), sink: tensor('f32', 'h') },
  outputs: { weights: tensor('T', 'b h s t') },
  body:
    ({ logits, sink }, { t: n }) =>
    (b, h, s) => {
      const v = row(n, (t) => logits(b, h, s, t))
      const top = maximum(
        max(n, (t) => v(t)),
        sink(h),
      )
      const e = row(n, (t) => exp(v(t) - top))
      const total = sum(n, (t) => e(t)) + exp(sink(h) - top)
      return { weights: row(n, (t) => e(t) / total) }
    },
})

/** "Off by one": weights add up to less than 1 if no key is relevant. */
export const softmax = op('softmax', {
  dims: ['m', 'n'],
  types: { T: floats },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c))
      return { y: row(n, (c) => e(c) / (total + exp(-top))) }
    },
})

/** Powers of two, with a temperature that divides the distance from the maximum, and keys that have no weight. */
export const weighHot = op('weigh_hot', {
  dims: ['m', 'n'],
  types: { T: floats },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { temperature: 2 },
  body:
    ({ x }, { n, temperature }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => (c % 5 === 1 ? 0 : 2 ** ((v(c) - top) / temperature)))
      const total = sum(n, (c) => e(c))
      return { y: row(n, (c) => e(c) / total) }
    },
})

/** Not a softmax: weights are the squares of those of a softmax. */
export const weighSquared = op('weigh_squared', {
  dims: ['m', 'n'],
  types: { T: floats },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c))
      return { y: row(n, (c) => (e(c) / total) * (e(c) / total)) }
    },
})

/** Heads of keys that several heads of queries share. */
export const repeatHeads = op('repeat_heads', {
  dims: ['b', 't', 'g', 'h', 'd'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b t g d') },
  outputs: { y: tensor('T', 'b t h d') },
  facts: { h: '2*g' },
  body:
    ({ x }, { g, h: heads }) =>
    (b, t, h, d) => ({ y: x(b, t, idiv(h, idiv(heads, g)), d) }),
})

/** Rotation of halves, at positions that are given. */
export const rotate = op('rotate', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b s h d'), positions: tensor('i32', 'b s') },
  facts: { positions: { from: 0, to: 100 }, d: { atLeast: 2 } },
  outputs: { y: tensor('T', 'b s h d') },
  body:
    ({ x, positions }, { d: size }) =>
    (b, s, h, d) => {
      const half = idiv(size, 2)
      const at = d % half
      const angle = toFloat(positions(b, s)) * exp((-6 * toFloat(at)) / toFloat(half))
      const turned = d < half ? -x(b, s, h, at + half) : x(b, s, h, at)
      return { y: x(b, s, h, d) * cos(angle) + turned * sin(angle) }
    },
})

/** Every head of every position by its root mean square. */
export const headNorm = op('head_norm', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b s h d'), gamma: tensor('T', 'd') },
  outputs: { y: tensor('T', 'b s h d') },
  body:
    ({ x, gamma }, { d }) =>
    (b, s, h) => {
      const v = row(d, (c) => x(b, s, h, c))
      const squares = sum(d, (c) => v(c) ** 2)
      return { y: row(d, (c) => v(c) * rsqrt(squares / d + 1e-6) * gamma(c)) }
    },
})

/** Every head by its mean and its deviation, which is found from the mean. */
export const headLayerNorm = op('head_layer_norm', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b s h d'), gamma: tensor('T', 'd') },
  outputs: { y: tensor('T', 'b s h d') },
  body:
    ({ x, gamma }, { d }) =>
    (b, s, h) => {
      const mean = sum(d, (c) => x(b, s, h, c)) / d
      const variance = sum(d, (c) => (x(b, s, h, c) - mean) ** 2) / d
      return { y: row(d, (c) => (x(b, s, h, c) - mean) * rsqrt(variance + 0.1) * gamma(c)) }
    },
})

/** Weights, and the difference between a score and the logarithm of its weight. */
export const weighAndLog = op('weigh_and_log', {
  dims: ['m', 'n'],
  types: { T: floats },
  inputs: { logits: tensor('T', 'm n') },
  outputs: { weights: tensor('T', 'm n'), scale: tensor('f32', 'm') },
  body:
    ({ logits }, { n }) =>
    (m) => {
      const top = max(n, (c) => logits(m, c))
      const total = sum(n, (c) => exp(logits(m, c) - top))
      return { weights: row(n, (c) => exp(logits(m, c) - top) / total), scale: log(total) + top }
    },
})

export const gated = op('gated', {
  dims: ['b', 's', 'h', 'd'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b s h d'), gate: tensor('T', 'b s h d') },
  outputs: { y: tensor('T', 'b s h d') },
  body:
    ({ x, gate }) =>
    (b, s, h, d) => ({ y: x(b, s, h, d) / (1 + exp(-gate(b, s, h, d))) }),
})
