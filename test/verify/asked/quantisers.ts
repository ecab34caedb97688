/** Rows and groups as integers and as 8-bit floats, packed and unpacked. */

import { tensor } from '../../../src/runtime/api/index.js'
import { residualNormQuantise, unpackInt4 } from '../../projects/asked/specs/index.js'
import { groupFloat8, groupInt4, packInt4 } from '../../projects/recipes/specs/inference.js'
import { dequantiseRows, quantiseRows } from '../../projects/types/specs/index.js'
import { at, claim, drawn, f32, indices, largestOf, type Reference, rowsOf, squares } from './claims.js'

const steps = { class: 'reduction' } as const

/** Zhang and Sennrich, Root Mean Square Layer Normalization (2019), of a sum, and its rows as multiples of 1/127 of their largest. */
const residualRows: Reference = async (device) => {
  const [m, n] = [5, 53]
  const [x, before, gamma] = [drawn(m * n, 1), drawn(m * n, 2), drawn(n, 3)]
  const found = await device.call(residualNormQuantise, {
    ...{ x: f32([m, n], x), before: f32([m, n], before), gamma: f32([n], gamma) },
  })
  const sums = x.map((each, i) => each + at(before, i))
  const normed = rowsOf(sums, n).map((row) => row.map((each, c) => (each * at(gamma, c)) / Math.sqrt(squares(row) / n + 1e-6)))
  const step = normed.map((row) => Math.max(...row.map(Math.abs)) / 127)
  const whole = (by: number): number[] => normed.flatMap((row, i) => row.map((each) => Math.round(each / (by * at(step, i)))))
  return [
    claim('added', found.added, sums, x, { class: 'elementwise', scale: 4 }),
    claim(
      'step',
      found.step,
      step,
      normed.map((row) => largestOf(row.map(Math.abs)) / 128),
      { class: 'reduction', length: n, scale: 0 },
    ),
    claim('q', found.q, whole(1), whole(1.1), steps),
  ]
}

/** Numbers of float8 (e4m3) that lie on either side: the codes as OCP states them (8-bit Floating Point Specification, 2023). */
const float8: readonly number[] = indices(127).map((code) => {
  const [exponent, mantissa] = [code >> 3, code & 7]
  return exponent === 0 ? (mantissa / 8) * 2 ** -6 : (1 + mantissa / 8) * 2 ** (exponent - 7)
})

/** Rows or groups of rows as 8-bit floats whose largest is 448, times a scale. */
const groupsOfFloat8: Reference = async (device) => {
  const [m, g, k] = [3, 5, 19]
  const x = drawn(m * g * k, 1)
  const { q, scale } = await device.call(groupFloat8, { x: f32([m, g, k], x) })
  const scales = (most: number): number[] => rowsOf(x, k).map((row) => largestOf(row.map(Math.abs)) / most)
  const values = (of: readonly number[]): number[] => x.map((each, i) => each / at(of, Math.floor(i / k)))
  return [
    claim('scale', scale, scales(448), scales(240), { class: 'elementwise', scale: 0 }),
    claim('q', q, values(scales(448)), values(scales(240)), { class: 'elementwise', scale: 1 }),
  ]
}

const rowsOfFloat8: Reference = async (device) => {
  const [m, n] = [3, 53]
  const x = drawn(m * n, 6)
  const { q, scale } = await device.call(quantiseRows, { x: f32([m, n], x) })
  const { y } = await device.call(dequantiseRows, { q, scale })
  const scales = rowsOf(x, n).map((row) => largestOf(row.map(Math.abs)) / 448)
  /** Rounds to the nearest code, ties to the even one. */
  const nearest = (value: number): number => {
    const size = Math.abs(value)
    const code = indices(127).reduce((best, each) => {
      const [far, near] = [Math.abs(at(float8, best) - size), Math.abs(at(float8, each) - size)]
      return near < far || (near === far && each % 2 === 0) ? each : best
    }, 0)
    return Math.sign(value) * at(float8, code)
  }
  // Scales are stored as float32, and so are values before rounding to a code.
  const stored = x.map((each, i) => nearest(Math.fround(each / Math.fround(at(scales, Math.floor(i / n))))))
  const again = stored.map((each, i) => each * at(scales, Math.floor(i / n)))
  return [
    claim('q', q, stored, stored.with(1, nearest(at(stored, 1) / 2)), { class: 'exact' }),
    claim('y', y, again, x, { class: 'elementwise', scale: 0 }),
  ]
}

/** Multiples of 1/7 of a group's largest. */
const groupsOfInt4: Reference = async (device) => {
  const [m, g, k] = [3, 5, 19]
  const x = drawn(m * g * k, 1)
  const { q, scale } = await device.call(groupInt4, { x: f32([m, g, k], x) })
  const scales = (most: number): number[] => rowsOf(x, k).map((row) => largestOf(row.map(Math.abs)) / most)
  const values = (most: number): number[] => x.map((each, i) => Math.round(each / at(scales(most), Math.floor(i / k))))
  return [
    claim('scale', scale, scales(7), scales(8), { class: 'elementwise', scale: 0 }),
    // Every code is determined: no value is halfway between two.
    claim('q', q, values(7), values(8), { class: 'exact' }),
  ]
}

const packed: Reference = async (device) => {
  const [m, k] = [5, 23]
  const q = indices(m * 2 * k).map((i) => ((i * i + i) % 15) - 7)
  const { packed: found } = await device.call(packInt4, { q: tensor('i16', [m, 2 * k], q) }, { dims: { k } })
  const bytes = (low: number): number[] => indices(m * k).map((i) => at(q, 2 * i + low) + 8 + 16 * (at(q, 2 * i + 1 - low) + 8))
  return [claim('packed', found, bytes(0), bytes(1), { class: 'exact' })]
}

const unpacked: Reference = async (device) => {
  const [rows, columns, g] = [3, 20, 5]
  const bytes = indices((rows * columns) / 2).map((i) => (i * 83 + 7) % 256)
  const scales = drawn(rows * g, 1)
  const given = { packed: tensor('u8', [rows, columns / 2], bytes), scales: f32([rows, g], scales) }
  const { y } = await device.call(unpackInt4, given, { dims: { n: columns } })
  const values = (low: number): number[] =>
    indices(rows * columns).map((i) => {
      const byte = at(bytes, Math.floor(i / 2))
      const half = i % 2 === low ? byte % 16 : Math.floor(byte / 16)
      const group = Math.floor(((i % columns) * g) / columns)
      return (half - 8) * at(scales, Math.floor(i / columns) * g + group)
    })
  return [claim('y', y, values(0), values(1), { class: 'elementwise', scale: 0 })]
}

export const quantisers = { residualRows, groupsOfFloat8, rowsOfFloat8, groupsOfInt4, packed, unpacked }
