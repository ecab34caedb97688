/** Softmax and norms over channels and down columns, where every element needs the reduction of its column. */
import { batchNorm, channelNorm, channelSoftmax, columnSoftmax } from '../../projects/workshop/specs/channels.js'
import { at, claim, columnsOf, drawn, f32, indices, type Reference, rowsOf } from './claims.js'
import { softmaxOf, standard } from './norms.js'

/** Reduction of each column of consecutive matrices, in the order of the matrices. */
function byColumns(
  x: readonly number[],
  [rows, n]: readonly [number, number],
  of: (column: readonly number[]) => number[],
): number[] {
  return rowsOf(x, rows * n).flatMap((matrix) => {
    const made = columnsOf(matrix, n).map(of)
    return indices(rows * n).map((i) => at(made[i % n] ?? [], Math.floor(i / n)))
  })
}

const softmax: Reference = async (device) => {
  const [b, c, s] = [3, 37, 21]
  const x = drawn(b * c * s, 1)
  const { y } = await device.call(channelSoftmax, { x: f32([b, c, s], x) })
  const within = { class: 'reduction', length: c, scale: 0 } as const
  // One that mistakes positions for channels.
  const wrong = rowsOf(x, s).flatMap(softmaxOf)
  return [claim('y', y, byColumns(x, [c, s], softmaxOf), wrong, within)]
}

const columnWise: Reference = async (device) => {
  const x = drawn(301 * 13, 2)
  const { y } = await device.call(columnSoftmax, { x: f32([301, 13], x) })
  const within = { class: 'reduction', length: 301, scale: 0 } as const
  return [claim('y', y, byColumns(x, [301, 13], softmaxOf), rowsOf(x, 13).flatMap(softmaxOf), within)]
}

/** Ba et al. (2016), over the channels of an image. */
const norm: Reference = async (device) => {
  const [b, c, h, w] = [2, 41, 3, 5]
  const [x, gamma] = [drawn(b * c * h * w, 1), drawn(c, 2)]
  const { y } = await device.call(channelNorm, { x: f32([b, c, h, w], x), gamma: f32([c], gamma) })
  const of = (eps: number) => byColumns(x, [c, h * w], (column) => standard(column, eps).map((each, k) => each * at(gamma, k)))
  return [claim('y', y, of(1e-5), of(1e-1), { class: 'reduction', length: c, scale: 8 })]
}

/** Ioffe and Szegedy, Batch Normalization (2015). */
const batch: Reference = async (device) => {
  const [rows, k] = [131, 19]
  const [x, gamma, beta] = [drawn(rows * k, 1), drawn(k, 2), drawn(k, 3)]
  const given = { x: f32([rows, k], x), gamma: f32([k], gamma), beta: f32([k], beta) }
  const { y } = await device.call(batchNorm, given)
  const of = (eps: number) =>
    byColumns(x, [rows, k], (column) => standard(column, eps)).map((each, i) => each * at(gamma, i % k) + at(beta, i % k))
  return [claim('y', y, of(1e-5), of(1e-1), { class: 'reduction', length: rows, scale: 8 })]
}

export const channels = { softmax, columnWise, norm, batch }
