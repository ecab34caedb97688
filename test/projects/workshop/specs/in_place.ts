/** Rows and statistics that replace their inputs. */
import { exp, log, max, op, row, rsqrt, sqrt, sum, tensor } from 'heddle'

/** The loss of a row of logits, which become their own gradient: no second tensor of the size of a vocabulary. */
export const lossInPlace = op('loss_in_place', {
  dims: ['m', 'n'],
  inputs: { logits: tensor('f32', 'm n'), label: tensor('i32', 'm') },
  outputs: { loss: tensor('f32', 'm'), gradient: tensor('f32', 'm n') },
  updates: { gradient: 'logits' },
  facts: { label: { index: 'n', also: [-100] } },
  body:
    ({ logits, label }, { n }) =>
    (m) => {
      const top = max(n, (c) => logits(m, c))
      const lse = top + log(sum(n, (c) => exp(logits(m, c) - top)))
      const own = sum(n, (c) => (c === label(m) ? logits(m, c) : 0))
      const isCounted = label(m) >= 0
      const slope = row(n, (c) => exp(logits(m, c) - lse) - (c === label(m) ? 1 : 0))
      return { loss: isCounted ? lse - own : 0, gradient: row(n, (c) => (isCounted ? slope(c) : 0)) }
    },
})

/** LAMB, one row per layer: the step of a row has the norm of its weights, by the norms of both. */
export const lamb = op('lamb', {
  dims: ['l', 'n'],
  inputs: { p: tensor('f32', 'l n'), m: tensor('f32', 'l n'), v: tensor('f32', 'l n'), g: tensor('f32', 'l n') },
  outputs: { p2: tensor('f32', 'l n'), m2: tensor('f32', 'l n'), v2: tensor('f32', 'l n'), ratio: tensor('f32', 'l') },
  updates: { p2: 'p', m2: 'm', v2: 'v' },
  facts: { v: { from: 0.01, to: 4 } },
  attrs: { rate: 1e-2, beta1: 0.9, beta2: 0.999, eps: 1e-6, decay: 0.01 },
  body:
    ({ p, m, v, g }, { n, rate, beta1, beta2, eps, decay }) =>
    (l) => {
      const m2 = row(n, (c) => beta1 * m(l, c) + (1 - beta1) * g(l, c))
      const v2 = row(n, (c) => beta2 * v(l, c) + (1 - beta2) * g(l, c) ** 2)
      const step = row(n, (c) => m2(c) / (sqrt(v2(c)) + eps) + decay * p(l, c))
      const length = sqrt(sum(n, (c) => p(l, c) ** 2))
      const stepLength = sqrt(sum(n, (c) => step(c) ** 2))
      const ratio = length > 0 && stepLength > 0 ? length / stepLength : 1
      return { p2: row(n, (c) => p(l, c) - rate * ratio * step(c)), m2: row(n, (c) => m2(c)), v2: row(n, (c) => v2(c)), ratio }
    },
})

/** Each of two rows reads the values that the other replaces, and one of them needs a sum first. */
export const exchange = op('exchange', {
  dims: ['l', 'n'],
  inputs: { p: tensor('f32', 'l n'), m: tensor('f32', 'l n'), g: tensor('f32', 'l n') },
  outputs: { p2: tensor('f32', 'l n'), m2: tensor('f32', 'l n') },
  updates: { p2: 'p', m2: 'm' },
  body:
    ({ p, m, g }, { n }) =>
    (l) => {
      const mean = sum(n, (c) => g(l, c)) / n
      return { p2: row(n, (c) => p(l, c) - mean * m(l, c)), m2: row(n, (c) => 0.5 * m(l, c) + p(l, c)) }
    },
})

/** A running mean and variance of channels, one reading the other's memory before it is replaced, and the coefficients of a batch norm. */
export const runningMoments = op('running_moments', {
  dims: ['b', 'n'],
  inputs: { x: tensor('f32', 'b n'), mean: tensor('f32', 'n'), variance: tensor('f32', 'n') },
  outputs: { newMean: tensor('f32', 'n'), newVariance: tensor('f32', 'n'), inverse: tensor('f32', 'n') },
  updates: { newMean: 'mean', newVariance: 'variance' },
  facts: { variance: { from: 0.1, to: 4 }, b: { atLeast: 1 } },
  attrs: { momentum: 0.1 },
  body:
    ({ x, mean, variance }, { b, momentum }) =>
    (c) => {
      const own = sum(b, (i) => x(i, c)) / b
      const spread = sum(b, (i) => (x(i, c) - own) ** 2) / b
      return {
        newMean: mean(c) + momentum * (own - mean(c)),
        newVariance: (1 - momentum) * (variance(c) + momentum * (own - mean(c)) ** 2) + momentum * spread,
        inverse: rsqrt(spread + 1e-5),
      }
    },
})
