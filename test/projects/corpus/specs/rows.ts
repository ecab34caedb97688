/** Rows as layers of today have them: norms, positions, gates and losses. */
import { abs, cos, exp, idiv, log, max, maximum, minimum, op, row, rsqrt, sin, sum, tanh, tensor, toFloat } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** The norm of a head of queries or keys, and its rotation by halves. */
export const headNormRotary = op('head_norm_rotary', {
  dims: ['t', 'h', 'd', 'e'],
  types,
  inputs: { x: tensor('T', 't h d'), gamma: tensor('T', 'd'), angle: tensor('f32', 't e') },
  outputs: { y: tensor('T', 't h d') },
  facts: { d: '2*e' },
  body:
    ({ x, gamma, angle }, { d, e }) =>
    (t, h) => {
      const scale = rsqrt(sum(d, (c) => x(t, h, c) ** 2) / d + 1e-6)
      return {
        y: row(d, (c) => {
          const partner = c < e ? c + e : c - e
          const turned = (c < e ? -1 : 1) * x(t, h, partner) * scale * gamma(partner)
          const a = angle(t, c < e ? c : c - e)
          return x(t, h, c) * scale * gamma(c) * cos(a) + turned * sin(a)
        }),
      }
    },
})

/** Rotation of pairs whose angles repeat for each 32 elements. */
export const rotaryGroups = op('rotary_groups', {
  dims: ['t', 'd', 'p'],
  types,
  inputs: { x: tensor('T', 't d'), angle: tensor('f32', 't p') },
  outputs: { y: tensor('T', 't d') },
  facts: { p: 16 },
  body:
    ({ x, angle }, { d }) =>
    (t) => ({
      y: row(d, (c) => {
        const a = angle(t, idiv(c % 32, 2))
        const other = c % 2 === 0 ? -x(t, minimum(c + 1, d - 1)) : x(t, maximum(c - 1, 0))
        return x(t, c) * cos(a) + other * sin(a)
      }),
    }),
})

/** A layer norm whose scale and shift come from a condition, with a gate for the residual. */
export const adaptiveNorm = op('adaptive_norm', {
  dims: ['b', 's', 'n'],
  types,
  inputs: {
    x: tensor('T', 'b s n'),
    before: tensor('T', 'b s n'),
    scale: tensor('T', 'b n'),
    shift: tensor('T', 'b n'),
    gate: tensor('T', 'b n'),
  },
  outputs: { sum: tensor('T', 'b s n'), y: tensor('T', 'b s n') },
  body:
    ({ x, before, scale, shift, gate }, { n }) =>
    (b, s) => {
      const v = row(n, (c) => before(b, s, c) + gate(b, c) * x(b, s, c))
      const mean = sum(n, (c) => v(c)) / n
      const inverse = rsqrt(sum(n, (c) => (v(c) - mean) ** 2) / n + 1e-6)
      return { sum: row(n, (c) => v(c)), y: row(n, (c) => (v(c) - mean) * inverse * (1 + scale(b, c)) + shift(b, c)) }
    },
})

/** Norms before and after a residual, as in Gemma 2. */
export const sandwichNorm = op('sandwich_norm', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), before: tensor('T', 'm n'), inner: tensor('T', 'n'), outer: tensor('T', 'n') },
  outputs: { sum: tensor('T', 'm n'), y: tensor('T', 'm n') },
  body:
    ({ x, before, inner, outer }, { n }) =>
    (m) => {
      const first = rsqrt(sum(n, (c) => x(m, c) ** 2) / n + 1e-6)
      const v = row(n, (c) => before(m, c) + x(m, c) * first * (1 + inner(c)))
      const second = rsqrt(sum(n, (c) => v(c) ** 2) / n + 1e-6)
      return { sum: row(n, (c) => v(c)), y: row(n, (c) => v(c) * second * (1 + outer(c))) }
    },
})

/** Gates of the two halves of a row, with a limit (gpt-oss). */
export const limitedGate = op('limited_gate', {
  dims: ['m', 'n', 'w'],
  types,
  inputs: { x: tensor('T', 'm w') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { limit: 7, alpha: 1.702 },
  facts: { w: '2*n' },
  body:
    ({ x }, { limit, alpha }) =>
    (m, c) => {
      const gate = minimum(x(m, 2 * c), limit)
      const up = maximum(minimum(x(m, 2 * c + 1), limit), -limit)
      return { y: (gate / (1 + exp(-alpha * gate))) * (up + 1) }
    },
})

/** Group norm over channels that lie last, with SiLU. */
export const groupNormLast = op('group_norm_last', {
  dims: ['b', 's', 'c', 'g'],
  types,
  inputs: {
    x: tensor('T', 'b s c'),
    mean: tensor('f32', 'b g'),
    inverse: tensor('f32', 'b g'),
    gamma: tensor('T', 'c'),
    beta: tensor('T', 'c'),
  },
  outputs: { y: tensor('T', 'b s c') },
  facts: { c: '16*g' },
  body:
    ({ x, mean, inverse, gamma, beta }) =>
    (b, s, c) => {
      const u = (x(b, s, c) - mean(b, idiv(c, 16))) * inverse(b, idiv(c, 16)) * gamma(c) + beta(c)
      return { y: u / (1 + exp(-u)) }
    },
})

/** Cross entropy with smoothed labels, capped logits and a penalty of the log of their sum. */
export const smoothedLoss = op('smoothed_loss', {
  dims: ['m', 'v'],
  types,
  inputs: { logits: tensor('T', 'm v'), label: tensor('i32', 'm') },
  outputs: { loss: tensor('f32', 'm'), z: tensor('f32', 'm') },
  attrs: { cap: 30, smoothing: 0.1, penalty: 0.0001 },
  facts: { label: { index: 'v' } },
  body:
    ({ logits, label }, { v, cap, smoothing, penalty }) =>
    (m) => {
      const x = row(v, (c) => cap * tanh(logits(m, c) / cap))
      const top = max(v, x)
      const z = top + log(sum(v, (c) => exp(x(c) - top)))
      const mean = sum(v, (c) => x(c)) / v
      const own = cap * tanh(logits(m, label(m)) / cap)
      return { loss: z - (1 - smoothing) * own - smoothing * mean + penalty * z * z, z }
    },
})

/** Gradient of a loss with respect to the logits. */
export const lossBackward = op('loss_backward', {
  dims: ['m', 'v'],
  types,
  inputs: { logits: tensor('T', 'm v'), label: tensor('i32', 'm'), z: tensor('f32', 'm'), dy: tensor('f32', 'm') },
  outputs: { dx: tensor('T', 'm v') },
  facts: { label: { index: 'v' } },
  body:
    ({ logits, label, z, dy }, { v }) =>
    (m) => ({ dx: row(v, (c) => (exp(logits(m, c) - z(m)) - (c === label(m) ? 1 : 0)) * dy(m)) }),
})

/** Divergence of a student's words from a teacher's. */
export const distilLoss = op('distil_loss', {
  dims: ['m', 'v'],
  types,
  inputs: { student: tensor('T', 'm v'), teacher: tensor('T', 'm v') },
  outputs: { loss: tensor('f32', 'm') },
  attrs: { temperature: 2 },
  body:
    ({ student, teacher }, { v, temperature }) =>
    (m) => {
      const a = row(v, (c) => student(m, c) / temperature)
      const b = row(v, (c) => teacher(m, c) / temperature)
      const topA = max(v, a)
      const topB = max(v, b)
      const za = topA + log(sum(v, (c) => exp(a(c) - topA)))
      const zb = topB + log(sum(v, (c) => exp(b(c) - topB)))
      return { loss: sum(v, (c) => exp(b(c) - zb) * (b(c) - zb - a(c) + za)) }
    },
})

/** A row of unit length, and the share of it that is largest. */
export const unitRow = op('unit_row', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n'), most: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const inverse = rsqrt(sum(n, (c) => v(c) ** 2) + 1e-12)
      return { y: row(n, (c) => v(c) * inverse), most: max(n, (c) => abs(v(c))) * inverse }
    },
})

/** Sines and cosines of a time, as diffusion models have them. */
export const timeEmbedding = op('time_embedding', {
  dims: ['b', 'n', 'h'],
  types,
  inputs: { time: tensor('f32', 'b') },
  outputs: { y: tensor('T', 'b n') },
  facts: { n: '2*h' },
  body:
    ({ time }, { h }) =>
    (b, c) => {
      const angle = time(b) * exp((-9.210340371976184 * toFloat(c % h)) / toFloat(h))
      return { y: c < h ? cos(angle) : sin(angle) }
    },
})
