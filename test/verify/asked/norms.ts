/** Norms and losses with their gradients, and their statistics of rows, columns, channels and whole tensors. */
import { groupNorm, layerNormBackward, softmaxBackward } from '../../projects/asked/specs/index.js'
import { channelGroupNorm, instanceNormGradient, smoothedLoss } from '../../projects/recipes/specs/training.js'
import { columnLargest, columnMoments, normBackward } from '../../projects/workshop/specs/columns.js'
import { lossInPlace } from '../../projects/workshop/specs/in_place.js'
import { absLargest, rowLogSum, rowMoments } from '../../projects/workshop/specs/monoids.js'
import { channelMoments, largestOf as largestOfVector, tensorVariance } from '../../projects/workshop/specs/totals.js'
import {
  at,
  claim,
  columnsOf,
  drawn,
  f32,
  i32,
  indices,
  largestOf,
  meanOf,
  type Reference,
  rowsOf,
  squares,
  sumOf,
  varianceOf,
} from './claims.js'

const [m, n] = [5, 53]
const shape = [m, n]
const bound = { class: 'reduction', length: n, scale: 8 } as const
const exact = { class: 'exact' } as const

/** Rows normalised to mean 0 and variance 1. */
export const standard = (row: readonly number[], eps: number): number[] =>
  row.map((each) => (each - meanOf(row)) / Math.sqrt(varianceOf(row) + eps))

/** Wu and He, Group Normalization (2018), of `b g` groups of `c` channels of `s` positions; weights by channel. */
function groups(
  x: readonly number[],
  gamma: readonly number[],
  beta: readonly number[],
  sizes: readonly number[],
  eps: number,
): number[] {
  const [g = 0, c = 0, s = 0] = sizes
  return rowsOf(x, c * s).flatMap((group, i) =>
    standard(group, eps).map((each, place) => {
      const channel = (i % g) * c + Math.floor(place / s)
      return each * at(gamma, channel) + at(beta, channel)
    }),
  )
}

const groupsAsRows: Reference = async (device) => {
  const [b, g, c, s] = [2, 3, 4, 11]
  const [x, gamma, beta] = [drawn(b * g * c * s, 1), drawn(g * c, 2), drawn(g * c, 3)]
  const given = { x: f32([b, g, c * s], x), gamma: f32([g, c], gamma), beta: f32([g, c], beta) }
  const { y } = await device.call(groupNorm, given)
  const found = (eps: number): number[] => groups(x, gamma, beta, [g, c, s], eps)
  return [claim('y', y, found(1e-5), found(1e-1), { class: 'reduction', length: c * s, scale: 8 })]
}

const groupsOfChannels: Reference = async (device) => {
  const [b, g, c, s] = [2, 3, 5, 13]
  const [x, gamma, beta] = [drawn(b * g * c * s, 4), drawn(g * c, 5), drawn(g * c, 6)]
  const given = { x: f32([b, g, c, s], x), gamma: f32([g, c], gamma), beta: f32([g, c], beta) }
  const { y } = await device.call(channelGroupNorm, given)
  const found = groups(x, gamma, beta, [g, c, s], 1e-5)
  // Statistics per channel are those of an instance norm.
  const wrong = groups(x, gamma, beta, [g * c, 1, s], 1e-5)
  return [claim('y', y, found, wrong, { class: 'reduction', length: c * s, scale: 8 })]
}

/** The slope of a loss by each element, from differences of both sides in doubles: no formula of a gradient. */
const slopes = (values: readonly number[], loss: (values: readonly number[]) => number): number[] => {
  const step = 1e-4
  const moved = (c: number, by: number): number => loss(values.with(c, at(values, c) + by))
  // Fourth order: the remaining error is rounding of the loss.
  return values.map((_, c) => (8 * (moved(c, step) - moved(c, -step)) - (moved(c, 2 * step) - moved(c, -2 * step))) / (12 * step))
}

/** Ba et al., Layer Normalization (2016): gradient of its input. */
const layerNorm: Reference = async (device) => {
  const [dy, x, gamma] = [drawn(m * n, 1), drawn(m * n, 2), drawn(n, 3)]
  const { dx } = await device.call(layerNormBackward, { dy: f32(shape, dy), x: f32(shape, x), gamma: f32([n], gamma) })
  const back = (eps: number): number[] =>
    rowsOf(x, n).flatMap((row, r) =>
      slopes(row, (values) => sumOf(standard(values, eps).map((each, c) => each * at(gamma, c) * at(dy, r * n + c)))),
    )
  return [claim('dx', dx, back(1e-5), back(1e-1), bound)]
}

/** Gradients of gamma and beta: sums over rows. */
const layerNormWeights: Reference = async (device) => {
  const [rows, k] = [301, 13]
  const [dy, x] = [drawn(rows * k, 1), drawn(rows * k, 2)]
  const normed = rowsOf(x, k).flatMap((row) => standard(row, 1e-5))
  const mean = rowsOf(x, k).map(meanOf)
  const inverse = rowsOf(x, k).map((row) => 1 / Math.sqrt(varianceOf(row) + 1e-5))
  const given = { dy: f32([rows, k], dy), x: f32([rows, k], x), mean: f32([rows], mean), inverse: f32([rows], inverse) }
  const { dgamma, dbeta } = await device.call(normBackward, given)
  const by = (of: readonly number[]): number[] =>
    columnsOf(
      dy.map((each, i) => each * at(of, i)),
      k,
    ).map(sumOf)
  const within = { class: 'reduction', length: rows, scale: 16 } as const
  return [
    claim('dgamma', dgamma, by(normed), by(x), within),
    claim('dbeta', dbeta, columnsOf(dy, k).map(sumOf), columnsOf(dy.slice(k), k).map(sumOf), within),
  ]
}

export const softmaxOf = (row: readonly number[]): number[] => {
  const powers = row.map((each) => Math.exp(each - largestOf(row)))
  return powers.map((each) => each / sumOf(powers))
}

const softmax: Reference = async (device) => {
  const [dy, x] = [drawn(m * n, 1), drawn(m * n, 2)]
  const y = rowsOf(x, n).flatMap((row) => softmaxOf(row).map(Math.fround))
  const { dx } = await device.call(softmaxBackward, { dy: f32(shape, dy), y: f32(shape, y) })
  const back = (r: number, row: readonly number[], sign: number): number[] =>
    slopes(row, (values) => sumOf(softmaxOf(values).map((each, c) => sign * each * at(dy, r * n + c))))
  const all = (sign: number): number[] => rowsOf(x, n).flatMap((row, r) => back(r, row, sign))
  return [claim('dx', dx, all(1), all(-1), { class: 'reduction', length: n, scale: 2 })]
}

/** Ulyanov et al., Instance Normalization (2016): gradient of its input. */
const instanceNorm: Reference = async (device) => {
  const [b, c, s] = [2, 3, 29]
  const [x, dy, gamma] = [drawn(b * c * s, 1), drawn(b * c * s, 2), drawn(c, 3)]
  const { dx } = await device.call(instanceNormGradient, { x: f32([b, c, s], x), dy: f32([b, c, s], dy), gamma: f32([c], gamma) })
  const back = (channel: (row: number) => number): number[] =>
    rowsOf(x, s).flatMap((row, r) =>
      slopes(row, (values) => sumOf(standard(values, 1e-5).map((each, t) => each * at(gamma, channel(r)) * at(dy, r * s + t)))),
    )
  return [
    claim(
      'dx',
      dx,
      back((r) => r % c),
      back((r) => (r + 1) % c),
      { class: 'reduction', length: s, scale: 8 },
    ),
  ]
}

/** Szegedy et al., Rethinking the Inception Architecture (2016), section 7: cross entropy with the distribution of labels smoothed. */
const smoothed: Reference = async (device) => {
  const [logits, label] = [drawn(m * n, 1), indices(m).map((r) => (r * 31) % n)]
  const found = await device.call(smoothedLoss, { logits: f32(shape, logits), label: i32([m], label) })
  const lossOf = (r: number, row: readonly number[], smoothing: number): number =>
    -sumOf(softmaxOf(row).map((p, c) => (smoothing / n + (c === at(label, r) ? 1 - smoothing : 0)) * Math.log(p)))
  const losses = (smoothing: number): number[] => rowsOf(logits, n).map((row, r) => lossOf(r, row, smoothing))
  const back = (smoothing: number): number[] =>
    rowsOf(logits, n).flatMap((row, r) => slopes(row, (values) => lossOf(r, values, smoothing)))
  return [
    claim('loss', found.loss, losses(0.1), losses(0), bound),
    claim('gradient', found.gradient, back(0.1), back(0), { class: 'reduction', length: n, scale: 1 }),
  ]
}

/** Cross entropy whose logits become their gradient, and rows that count nothing. Rows that registers hold, and rows that are read again. */
const lossWhereLogitsLie =
  (width: number): Reference =>
  async (device) => {
    const [logits, label] = [drawn(2 * width, 1), [5, -100]]
    const found = await device.call(lossInPlace, { logits: f32([2, width], logits), label: i32([2], label) })
    const counted = logits.slice(0, width)
    const softmaxed = softmaxOf(counted)
    const gradient = softmaxed.map((each, c) => each - (c === 5 ? 1 : 0))
    const none = counted.map(() => 0)
    const within = { class: 'reduction', length: width, scale: 8 } as const
    return [
      claim('loss', found.loss, [-Math.log(at(softmaxed, 5)), 0], [-Math.log(at(softmaxed, 6)), 0], within),
      claim('gradient', found.gradient, [...gradient, ...none], [...softmaxed, ...none], { ...within, scale: 1 }),
    ]
  }

/** Welford (1962) and Chan et al. (1979) in one pass; two passes here. */
const moments: Reference = async (device) => {
  const x = drawn(m * n, 1).map((each) => Math.fround(each + 4))
  const { mean, variance } = await device.call(rowMoments, { x: f32(shape, x) })
  const rows = rowsOf(x, n)
  return [
    claim(
      'mean',
      mean,
      rows.map(meanOf),
      rows.map((row) => sumOf(row) / (n - 1)),
      bound,
    ),
    claim(
      'variance',
      variance,
      rows.map(varianceOf),
      rows.map((row) => (varianceOf(row) * n) / (n - 1)),
      bound,
    ),
  ]
}

const logSum: Reference = async (device) => {
  const x = drawn(m * n, 1).map((each) => Math.fround(each * 50))
  const { y } = await device.call(rowLogSum, { x: f32(shape, x) })
  const of = (row: readonly number[]): number =>
    largestOf(row) + Math.log(sumOf(row.map((each) => Math.exp(each - largestOf(row)))))
  return [
    claim(
      'y',
      y,
      rowsOf(x, n).map(of),
      rowsOf(x, n)
        .map(largestOf)
        .map((top) => top + 1),
      { class: 'reduction', length: n, scale: 1 },
    ),
  ]
}

const largestMagnitude: Reference = async (device) => {
  const x = drawn(m * n, 1).map((each) => Math.round(each * 2))
  const { most, at: place } = await device.call(absLargest, { x: f32(shape, x) })
  const first = rowsOf(x, n).map((row) => row.findIndex((each) => Math.abs(each) === largestOf(row.map(Math.abs))))
  const last = rowsOf(x, n).map((row) => row.findLastIndex((each) => Math.abs(each) === largestOf(row.map(Math.abs))))
  const values = (of: readonly number[]): number[] => rowsOf(x, n).map((row, r) => at(row, at(of, r)))
  return [
    claim(
      'most',
      most,
      values(first),
      values(first).map((each) => -each),
      exact,
    ),
    claim('at', place, first, last, exact),
  ]
}

const columns: Reference = async (device) => {
  const [b, rows, k] = [2, 307, 7]
  const x = drawn(b * rows * k, 1)
  const found = await device.call(columnMoments, { x: f32([b, rows, k], x) })
  const each = rowsOf(x, rows * k).flatMap((matrix) => columnsOf(matrix, k))
  const within = { class: 'reduction', length: rows, scale: 4 } as const
  return [
    claim('mean', found.mean, each.map(meanOf), each.toReversed().map(meanOf), within),
    claim(
      'variance',
      found.variance,
      each.map(varianceOf),
      each.map((column) => squares(column) / rows),
      within,
    ),
  ]
}

const columnTops: Reference = async (device) => {
  const [rows, k, count] = [307, 7, 251]
  const x = drawn(rows * k, 2)
  const found = await device.call(columnLargest, { x: f32([rows, k], x), count: i32([], [count]) })
  const tops = (of: number): number[][] => columnsOf(x.slice(0, of * k), k)
  const of = (each: readonly number[]): number => each.indexOf(largestOf(each))
  return [
    claim(
      'most',
      found.most,
      tops(count).map(largestOf),
      tops(rows).map((each) => largestOf(each) + 1),
      exact,
    ),
    claim(
      'at',
      found.at,
      tops(count).map(of),
      tops(rows).map((each) => of(each) + 1),
      exact,
    ),
  ]
}

const channels: Reference = async (device) => {
  const [b, k, h, w] = [3, 5, 7, 9]
  const x = drawn(b * k * h * w, 1)
  const { mean, square } = await device.call(channelMoments, { x: f32([b, k, h, w], x) })
  const of = (channel: number): number[] => x.filter((_, i) => Math.floor(i / (h * w)) % k === channel)
  const all = indices(k).map(of)
  const within = { class: 'reduction', length: b * h * w, scale: 4 } as const
  return [
    claim('mean', mean, all.map(meanOf), all.toReversed().map(meanOf), within),
    claim(
      'square',
      square,
      all.map((each) => squares(each) / each.length),
      all.map(varianceOf),
      within,
    ),
  ]
}

const whole: Reference = async (device) => {
  const x = drawn(17 * 59, 1)
  const { variance } = await device.call(tensorVariance, { x: f32([17, 59], x) })
  const found = await device.call(largestOfVector, { x: f32([17 * 59], x) })
  const within = { class: 'reduction', length: x.length, scale: 4 } as const
  return [
    claim('variance', variance, [varianceOf(x)], [(2 * squares(x)) / x.length], within),
    claim('most', found.most, [largestOf(x)], [-largestOf(x)], exact),
    claim('at', found.at, [x.indexOf(largestOf(x))], [0], exact),
  ]
}

export const norms = {
  ...{ groupsAsRows, groupsOfChannels, layerNorm, layerNormWeights, softmax, instanceNorm, smoothed },
  ...{ shortLoss: lossWhereLogitsLie(67), longLoss: lossWhereLogitsLie(8195) },
  ...{ moments, logSum, largestMagnitude, columns, columnTops, channels, whole },
}
