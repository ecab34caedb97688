/** Ops of rows in parts of 32 columns, and of weights that are stored in parts. */
import { abs, argmax, idiv, max, minimum, op, row, rsqrt, sum, tensor } from 'heddle'
import { column, floats, matrix, ofParts, partPlace, partValue } from './shapes.js'

/** A weight stored as int8, with a step for each of its rows. */
export const channelWeight = op('channel_weight', {
  dims: ['n', 'k'],
  types: floats,
  inputs: { w: tensor('i8', 'n k'), step: column },
  outputs: { y: tensor('T', 'n k') },
  body:
    ({ w, step }) =>
    (n, c) => ({ y: w(n, c) * step(n) }),
})

/** A weight of four bits, two in a byte, the lower first, with a step and a zero for each 16 neighbours of a row. */
export const groupWeight = op('group_weight', {
  dims: ['n', 'k', 'h', 'g'],
  types: floats,
  inputs: { w: tensor('u8', 'n h'), step: tensor('T', 'n g') },
  outputs: { y: tensor('T', 'n k') },
  body:
    ({ w, step }) =>
    (n, c) => ({ y: (((w(n, idiv(c, 2)) >> (4 * (c % 2))) & 15) - 8) * step(n, idiv(c, 16)) }),
})

/** Sum and sum of squares of each 32 neighbours of a row. */
export const rowMoments = op('row_moments', {
  ...ofParts,
  outputs: { total: partValue, squares: partValue },
  body:
    ({ x }, { n, g }) =>
    (m) => ({
      total: row(g, (p) => sum(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))),
      squares: row(g, (p) => sum(minimum(32, n - p * 32), (i) => x(m, p * 32 + i) ** 2)),
    }),
})

/** A row divided by the largest of its stored partial maxima. */
export const byLargest = op('by_largest', {
  ...ofParts,
  inputs: { x: matrix, most: partValue },
  outputs: { y: matrix },
  body:
    ({ x, most }, { n, g }) =>
    (m) => {
      const step = 1 + abs(max(g, (p) => most(m, p)))
      return { y: row(n, (c) => x(m, c) / step) }
    },
})

/** The place of the largest among all columns, found in each 32 of them. */
export const wholePlaces = op('whole_places', {
  ...ofParts,
  outputs: { place: partPlace },
  body:
    ({ x }, { n, g }) =>
    (m) => ({ place: row(g, (p) => p * 32 + argmax(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))) }),
})

/** The largest absolute value of each 32 neighbours of a row, and the place of the largest one among them. */
export const rowLargest = op('row_largest', {
  ...ofParts,
  outputs: { most: partValue, place: partPlace },
  body:
    ({ x }, { n, g }) =>
    (m) => ({
      most: row(g, (p) => max(minimum(32, n - p * 32), (i) => abs(x(m, p * 32 + i)))),
      place: row(g, (p) => argmax(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))),
    }),
})

/** A sum of 32 neighbours that begin elsewhere. */
export const shiftedSums = op('shifted_sums', {
  ...ofParts,
  outputs: { total: partValue },
  body:
    ({ x }, { g }) =>
    (m) => ({ total: row(g, (p) => sum(32, (i) => x(m, p * 16 + i))) }),
})

/** A row normalised to mean 0 and variance 1 by moments of its parts. */
export const standardise = op('standardise', {
  ...ofParts,
  inputs: { x: matrix, total: partValue, squares: partValue },
  outputs: { y: matrix },
  attrs: { eps: 1e-5 },
  body:
    ({ x, total, squares }, { n, g, eps }) =>
    (m) => {
      const mean = sum(g, (p) => total(m, p)) / n
      const variance = sum(g, (p) => squares(m, p)) / n - mean ** 2
      return { y: row(n, (c) => (x(m, c) - mean) * rsqrt(variance + eps)) }
    },
})
