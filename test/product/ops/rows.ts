/** Ops around matmuls that no shipped graph has: per-row and per-column values, partners, norms and dequantisations before them. */
import { abs, cos, exp, idiv, max, op, row, rsqrt, sin, sum, tensor } from 'heddle'
import { column, floats, matrix, ofHeads, ofMatrix, rowValue } from './shapes.js'

/** One value per row and one per column, for sums of int8: a W8A8 matmul as floats. */
export const dequantiseBoth = op('dequantise_both', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('i32', 'm n'), rowStep: rowValue, columnStep: tensor('f32', 'n') },
  outputs: { y: matrix },
  body:
    ({ x, rowStep, columnStep }) =>
    (m, c) => ({ y: x(m, c) * rowStep(m) * columnStep(c) }),
})

export const rowScale = op('row_scale', {
  ...ofMatrix,
  inputs: { x: matrix, scale: rowValue },
  body:
    ({ x, scale }) =>
    (m, c) => ({ y: x(m, c) * scale(m) }),
})

/** Everything that is the same along a row: an extent, attributes, the row itself. */
export const rowConstants = op('row_constants', {
  ...ofMatrix,
  attrs: { a: 3, b: 7 },
  body:
    ({ x }, { n, a, b }) =>
    (m, c) => ({ y: (x(m, c) / n) * exp(a / 10) + (a / b) * m + m }),
})

/** A value per row, at an index from a table. */
export const tableScale = op('table_scale', {
  dims: ['m', 'n', 'v'],
  types: floats,
  inputs: { x: matrix, ids: tensor('i32', 'm'), table: tensor('T', 'v n'), scale: tensor('f32', 'v') },
  outputs: { y: matrix },
  body:
    ({ x, ids, table, scale }) =>
    (m, c) => ({ y: x(m, c) * scale(ids(m)) + table(ids(m), c) }),
})

/** Elements times a function of two sums over their row: a matmul with it may be scaled afterwards. */
export const balanced = op('balanced', {
  ...ofMatrix,
  inputs: { x: matrix, weight: column },
  body:
    ({ x, weight }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const size = sum(n, (c) => abs(v(c)))
      const power = sum(n, (c) => v(c) ** 2 * weight(c) ** 2)
      return { y: row(n, (c) => (-(v(c) * (size + 1)) / ((power + 2) * n)) * (weight(c) + 3)) }
    },
})

/** Elements from which something of their row is taken: no scale of the row makes them. */
export const centred = op('centred', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m) => {
      const mean = sum(n, (c) => x(m, c)) / n
      return { y: row(n, (c) => (x(m, c) - mean) * mean) }
    },
})

/** Elements scaled by their third moment, a sum that cancellation would make inaccurate if it were expanded. */
export const skewed = op('skewed', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c)) / n
      const third = sum(n, (c) => (v(c) - mean) ** 2 * (v(c) - mean)) / n
      return { y: row(n, (c) => (v(c) - mean) * (third + 1)) }
    },
})

/** Elements divided by the largest of their row, which is not a sum. */
export const peaked = op('peaked', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m) => {
      const top = max(n, (c) => abs(x(m, c)))
      return { y: row(n, (c) => x(m, c) / (top + 1)) }
    },
})

/** Activation of a gated network over its two matmuls. */
export const gated = op('gated', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { gate: matrix, up: matrix },
  outputs: { y: matrix },
  body:
    ({ gate, up }) =>
    (m, c) => ({ y: (gate(m, c) / (1 + exp(-gate(m, c)))) * up(m, c) }),
})

/** Pairs of neighbouring columns rotated by an angle per row: the partner is selected by its index, and by a condition. */
export const pairRotation = op('pair_rotation', {
  ...ofMatrix,
  inputs: { x: matrix, angle: rowValue },
  body:
    ({ x, angle }) =>
    (m, c) => ({
      y:
        x(m, c) * cos(angle(m) * idiv(c, 2)) +
        (c % 2 === 0 ? -x(m, c + 1) : x(m, c - 1)) * sin(angle(m) * idiv(c, 2)) +
        x(m, c % 2 === 0 ? c + 1 : c - 1) / 8,
    }),
})

/** The same of columns half a row apart, which no chunk holds. */
export const halfPartners = op('half_partners', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, c) + x(m, c < idiv(n, 2) ? c + idiv(n, 2) : c - idiv(n, 2)) }),
})

/** Two results of one row. */
export const sumAndDifference = op('sum_and_difference', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: matrix, y: matrix },
  outputs: { total: matrix, difference: matrix },
  body:
    ({ x, y }) =>
    (m, c) => ({ total: x(m, c) + y(m, c), difference: x(m, c) - y(m, c) }),
})

export const rmsNorm = op('root_mean_square_norm', {
  ...ofMatrix,
  inputs: { x: matrix, gamma: column },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma }, { n, eps }) =>
    (m) => {
      const scale = rsqrt(sum(n, (c) => x(m, c) ** 2) / n + eps)
      return { y: row(n, (c) => x(m, c) * scale * gamma(c)) }
    },
})

/** A layer norm of a sum, whose parts have names. */
export const summedNorm = op('summed_norm', {
  ...ofMatrix,
  inputs: { x: matrix, r: matrix, gamma: column, beta: column },
  attrs: { eps: 1e-5 },
  body:
    ({ x, r, gamma, beta }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c) + r(m, c))
      const mean = sum(n, (c) => v(c)) / n
      const variance = sum(n, (c) => (v(c) - mean) ** 2) / n
      const z = row(n, (c) => (v(c) - mean) * rsqrt(variance + eps))
      return { y: row(n, (c) => (z(c) * (1 + gamma(c)) - beta(c)) / 8) }
    },
})

/** Columns together with those that differ in one bit of their number. */
export const butterflies = op('butterflies', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, c) + ((c ^ 1) < n ? x(m, c ^ 1) : 0) - x(m, c & -4) + x(m, (c >> 1) << 1) }),
})

/** Sums of a row up to each place. */
export const sumsBefore = op('sums_before', {
  ...ofMatrix,
  body:
    ({ x }) =>
    (m, c) => ({ y: sum(c + 1, (i) => x(m, i)) }),
})

/** The other end of a row. */
export const reversed = op('reversed', {
  ...ofMatrix,
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, n - 1 - c) / 2 }),
})

export const rowBias = op('row_bias', {
  ...ofMatrix,
  inputs: { x: matrix, bias: tensor('T', 'm') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: x(m, c) + bias(m) }),
})

export const bf16Only = op('bf16_only', {
  ...ofMatrix,
  types: { T: ['bf16'] },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) * 5 }),
})

export const noBf16 = op('no_bf16', {
  ...ofMatrix,
  types: { T: ['f32', 'f16'] },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) * 3 }),
})

/** Elements times an extent that no tensor has. */
export const byExtent = op('by_extent', {
  ...ofMatrix,
  dims: ['m', 'n', 'v'],
  body:
    ({ x }, { v }) =>
    (m, c) => ({ y: x(m, c) * v }),
})

/** Heads without the mean of all rows and of their own elements, as a group norm subtracts it. */
export const withoutMean = op('without_mean', {
  ...ofHeads,
  body:
    ({ x }, { m: rows, h }) =>
    (m, g, c) => ({ y: x(m, g, c) - sum(rows, (i) => sum(h, (k) => x(i, g, k))) / (rows * h) }),
})
