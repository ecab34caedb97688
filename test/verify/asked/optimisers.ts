/** Optimiser steps, and their reductions of whole gradients. Weights and moments are replaced in place. */
import { adafactorRows, lion, muonScale } from '../../projects/recipes/specs/training.js'
import { exchange, lamb, runningMoments } from '../../projects/workshop/specs/in_place.js'
import { adam } from '../../projects/workshop/specs/optimisers.js'
import { gradientNorm } from '../../projects/workshop/specs/totals.js'
import {
  at,
  claim,
  columnsOf,
  drawn,
  f32,
  indices,
  meanOf,
  type Reference,
  rowsOf,
  shares,
  squares,
  varianceOf,
} from './claims.js'

const n = 17 * 59
const element = { class: 'elementwise', scale: 4 } as const
const [p, m, g] = [drawn(n, 1), drawn(n, 2), drawn(n, 3)]
const v = shares(n, 4).map((each) => Math.fround(each + 0.01))

/** Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), algorithm 2, at step 7. */
const adamW: Reference = async (device) => {
  const step = 7
  const [scale1, scale2] = [1 / (1 - 0.9 ** step), 1 / (1 - 0.999 ** step)]
  const given = { p: f32([n], p), m: f32([n], m), v: f32([n], v), g: f32([n], g) }
  const { p2, m2, v2 } = await device.call(adam, given, { attrs: { rate: 0.1, scale1, scale2 } })
  const first = m.map((each, c) => 0.9 * each + 0.1 * at(g, c))
  const second = v.map((each, c) => 0.999 * each + 0.001 * at(g, c) ** 2)
  const next = (decay: number): number[] =>
    p.map((each, c) => {
      const direction = (at(first, c) * scale1) / (Math.sqrt(at(second, c) * scale2) + 1e-8)
      return each - 0.1 * direction - 0.1 * decay * each
    })
  // A direction is as large as a moment over the root of a small one.
  return [
    claim('weights', p2, next(0.01), next(0), { class: 'elementwise', scale: 16 }),
    claim('first moment', m2, first, m, element),
    claim('second moment', v2, second, v, element),
  ]
}

/** Chen et al., Symbolic Discovery of Optimization Algorithms (2023), algorithm 2. */
const lionStep: Reference = async (device) => {
  const { p2, m2 } = await device.call(lion, { p: f32([n], p), m: f32([n], m), g: f32([n], g) }, { attrs: { rate: 0.1 } })
  const next = (beta: number): number[] =>
    p.map((each, c) => each - 0.1 * (Math.sign(beta * at(m, c) + (1 - beta) * at(g, c)) + 0.1 * each))
  const moment = (beta: number): number[] => m.map((each, c) => beta * each + (1 - beta) * at(g, c))
  return [claim('weights', p2, next(0.9), next(0.5), element), claim('moment', m2, moment(0.99), moment(0.9), element)]
}

/** You et al., Large Batch Optimization for Deep Learning (2020), algorithm 2 without corrections of moments: a layer is a row. */
const lambStep: Reference = async (device) => {
  const [l, k] = [17, 59]
  const given = { p: f32([l, k], p), m: f32([l, k], m), v: f32([l, k], v), g: f32([l, k], g) }
  const { p2, ratio } = await device.call(lamb, given)
  const steps = p.map((each, c) => {
    const [first, second] = [0.9 * at(m, c) + 0.1 * at(g, c), 0.999 * at(v, c) + 0.001 * at(g, c) ** 2]
    return first / (Math.sqrt(second) + 1e-6) + 0.01 * each
  })
  const ratios = rowsOf(p, k).map((row, i) => Math.sqrt(squares(row) / squares(rowsOf(steps, k)[i] ?? [])))
  const next = (ratioOf: (row: number) => number): number[] =>
    p.map((each, c) => each - 0.01 * ratioOf(Math.floor(c / k)) * at(steps, c))
  const bound = { class: 'reduction', length: k, scale: 4 } as const
  return [
    claim(
      'weights',
      p2,
      next((row) => at(ratios, row)),
      next(() => 1),
      bound,
    ),
    claim(
      'ratio',
      ratio,
      ratios,
      ratios.map((each) => 1 / each),
      bound,
    ),
  ]
}

/** Shazeer and Stern, Adafactor (2018), algorithm 4: the factor of rows. */
const adafactor: Reference = async (device) => {
  const [rows, k] = [17, 59]
  const before = shares(rows, 5)
  const { r2 } = await device.call(adafactorRows, { g: f32([rows, k], g), r: f32([rows], before) })
  const next = (beta: number): number[] => rowsOf(g, k).map((row, i) => beta * at(before, i) + (1 - beta) * (squares(row) / k))
  return [claim('r', r2, next(0.99), next(0.9), { class: 'reduction', length: k, scale: 4 })]
}

/** Jordan et al., Muon (2024): momentum over its Frobenius norm, before the iterations of Newton and Schulz. */
const muon: Reference = async (device) => {
  const { scale } = await device.call(muonScale, { g: f32([17, 59], g) })
  const exact = 1 / (Math.sqrt(squares(g)) + 1e-7)
  return [claim('scale', scale, [exact], [exact * Math.sqrt(17)], { class: 'reduction', length: n, scale: 0 })]
}

/** Pascanu et al., On the difficulty of training recurrent neural networks (2013), algorithm 1, of gradients of a scaled loss. */
const clipping: Reference = async (device) => {
  const { scale, norm, top } = await device.call(gradientNorm, { g: f32([17, 59], g), loss: f32([], [0.5]) })
  const length = Math.sqrt(squares(g)) / 0.5
  const bound = { class: 'reduction', length: n, scale: 0 } as const
  return [
    claim('norm', norm, [length], [length / 2], bound),
    claim('scale', scale, [1 / (length + 1e-6)], [1], bound),
    claim('top', top, [Math.max(...g.map(Math.abs))], [-Math.max(...g.map(Math.abs))], { class: 'exact' }),
  ]
}

/** Both rows are computed from the values before either was replaced: register-resident rows, and multi-pass rows. */
const exchanged =
  (l: number, k: number): Reference =>
  async (device) => {
    const [x, y, z] = [drawn(l * k, 1), drawn(l * k, 2), drawn(l * k, 3).map((each) => Math.fround(each + 1))]
    const { p2, m2 } = await device.call(exchange, { p: f32([l, k], x), m: f32([l, k], y), g: f32([l, k], z) })
    const means = rowsOf(z, k).map(meanOf)
    const next = (of: readonly number[]): number[] => x.map((each, c) => each - at(means, Math.floor(c / k)) * at(of, c))
    const other = (of: readonly number[]): number[] => y.map((each, c) => 0.5 * each + at(of, c))
    const bound = { class: 'reduction', length: k, scale: 4 } as const
    return [claim('p', p2, next(y), next(other(x)), bound), claim('m', m2, other(x), other(next(y)), bound)]
  }

/** Ioffe and Szegedy, Batch Normalization (2015): moments of a batch, folded into running ones (West's form of the variance). */
const running: Reference = async (device) => {
  const [b, k] = [9, 37]
  const [x, mean, variance] = [drawn(b * k, 1), drawn(k, 2), shares(k, 3).map((each) => Math.fround(each + 0.1))]
  const found = await device.call(runningMoments, { x: f32([b, k], x), mean: f32([k], mean), variance: f32([k], variance) })
  const columns = columnsOf(x, k)
  const [own, spread] = [columns.map(meanOf), columns.map(varianceOf)]
  const newMean = indices(k).map((c) => 0.9 * at(mean, c) + 0.1 * at(own, c))
  // The distance is that to the old mean, which the same kernel replaces.
  const moved = (from: readonly number[]): number[] =>
    variance.map((each, c) => 0.9 * (each + 0.1 * (at(own, c) - at(from, c)) ** 2) + 0.1 * at(spread, c))
  const bound = { class: 'reduction', length: b, scale: 4 } as const
  return [
    claim('mean', found.newMean, newMean, mean, bound),
    claim('variance', found.newVariance, moved(mean), moved(newMean), bound),
    claim(
      'inverse',
      found.inverse,
      spread.map((each) => 1 / Math.sqrt(each + 1e-5)),
      spread.map((each) => 1 / Math.sqrt(each + 1e-2)),
      bound,
    ),
  ]
}

export const optimisers = {
  adamW,
  lionStep,
  lambStep,
  adafactor,
  muon,
  clipping,
  exchanged: exchanged(17, 59),
  exchangedLong: exchanged(1, 8195),
  running,
}
