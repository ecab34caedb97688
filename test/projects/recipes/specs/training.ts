/** Optimisers, norms and losses with their gradients. */
import { exp, int, log, max, op, row, rsqrt, sqrt, sum, tensor } from 'heddle'

/** One step of Lion: the sign of an interpolation, in place. */
export const lion = op('lion', {
  dims: ['n'],
  inputs: { p: tensor('f32', 'n'), m: tensor('f32', 'n'), g: tensor('f32', 'n') },
  outputs: { p2: tensor('f32', 'n'), m2: tensor('f32', 'n') },
  updates: { p2: 'p', m2: 'm' },
  attrs: { rate: 1e-4, beta1: 0.9, beta2: 0.99, decay: 0.1 },
  body:
    ({ p, m, g }, { rate, beta1, beta2, decay }) =>
    (c) => {
      const u = beta1 * m(c) + (1 - beta1) * g(c)
      const sign = u > 0 ? 1 : u < 0 ? -1 : 0
      return { p2: p(c) - rate * (sign + decay * p(c)), m2: beta2 * m(c) + (1 - beta2) * g(c) }
    },
})

/** Factored second moments of Adafactor: means of squares by rows. */
export const adafactorRows = op('adafactor_rows', {
  dims: ['m', 'n'],
  inputs: { g: tensor('f32', 'm n'), r: tensor('f32', 'm') },
  outputs: { r2: tensor('f32', 'm') },
  attrs: { beta: 0.99, eps: 1e-30 },
  body:
    ({ g, r }, { n, beta, eps }) =>
    (m) => ({ r2: beta * r(m) + (1 - beta) * (sum(n, (c) => g(m, c) ** 2 + eps) / n) }),
})

/** The start of Muon: momentum over the Frobenius norm. */
export const muonScale = op('muon_scale', {
  dims: ['m', 'n'],
  inputs: { g: tensor('f32', 'm n') },
  outputs: { scale: tensor('f32', '') },
  attrs: { eps: 1e-7 },
  body:
    ({ g }, { m, n, eps }) =>
    () => ({ scale: 1 / (sqrt(sum(m, (r) => sum(n, (c) => g(r, c) ** 2))) + eps) }),
})

/** Norm of groups of channels, over channels and places. */
export const channelGroupNorm = op('channel_group_norm', {
  dims: ['b', 'g', 'k', 's'],
  inputs: { x: tensor('f32', 'b g k s'), gamma: tensor('f32', 'g k'), beta: tensor('f32', 'g k') },
  outputs: { y: tensor('f32', 'b g k s') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma, beta }, { k, s, eps }) =>
    (b, g, c) => {
      const mean = sum(k, (i) => sum(s, (t) => x(b, g, i, t))) / (k * s)
      const variance = sum(k, (i) => sum(s, (t) => (x(b, g, i, t) - mean) ** 2)) / (k * s)
      return { y: row(s, (t) => (x(b, g, c, t) - mean) * rsqrt(variance + eps) * gamma(g, c) + beta(g, c)) }
    },
})

/** The gradient of an instance norm by its input. */
export const instanceNormGradient = op('instance_norm_gradient', {
  dims: ['b', 'c', 's'],
  inputs: { x: tensor('f32', 'b c s'), dy: tensor('f32', 'b c s'), gamma: tensor('f32', 'c') },
  outputs: { dx: tensor('f32', 'b c s') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, dy, gamma }, { s, eps }) =>
    (b, c) => {
      const v = row(s, (t) => x(b, c, t))
      const d = row(s, (t) => dy(b, c, t) * gamma(c))
      const mean = sum(s, (t) => v(t)) / s
      const inverse = rsqrt(sum(s, (t) => (v(t) - mean) ** 2) / s + eps)
      const first = sum(s, (t) => d(t)) / s
      const second = sum(s, (t) => d(t) * (v(t) - mean) * inverse) / s
      return { dx: row(s, (t) => inverse * (d(t) - first - (v(t) - mean) * inverse * second)) }
    },
})

/** Cross entropy with label smoothing, and its gradient by the logits. */
export const smoothedLoss = op('smoothed_loss', {
  dims: ['m', 'n'],
  inputs: { logits: tensor('f32', 'm n'), label: tensor('i32', 'm') },
  outputs: { loss: tensor('f32', 'm'), gradient: tensor('f32', 'm n') },
  facts: { label: { index: 'n' } },
  attrs: { smoothing: 0.1 },
  body:
    ({ logits, label }, { n, smoothing }) =>
    (m) => {
      const v = row(n, (c) => logits(m, c))
      const top = max(n, (c) => v(c))
      const total = sum(n, (c) => exp(v(c) - top))
      const lse = top + log(total)
      const mean = sum(n, (c) => v(c)) / n
      return {
        loss: lse - (1 - smoothing) * logits(m, label(m)) - smoothing * mean,
        gradient: row(n, (c) => exp(v(c) - lse) - smoothing / n - (c === label(m) ? 1 - smoothing : 0)),
      }
    },
})

/** Depthwise convolution over time, causal and dilated. */
export const dilated = op('dilated', {
  dims: ['b', 'c', 's', 'k'],
  inputs: { x: tensor('f32', 'b c s'), w: tensor('f32', 'c k') },
  outputs: { y: tensor('f32', 'b c s') },
  attrs: { step: int(2) },
  body:
    ({ x, w }, { k, step }) =>
    (b, c, t) => ({
      y: sum(k, (j) => (t - (k - 1 - j) * step >= 0 ? w(c, j) * x(b, c, t - (k - 1 - j) * step) : 0)),
    }),
})
