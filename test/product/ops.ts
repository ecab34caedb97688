/** Ops around matmuls that no shipped graph has: per-row and per-column values, partners, norms and dequantisations before them. */
import { abs, argmax, cos, exp, idiv, max, minimum, op, row, rsqrt, sin, sum, tensor } from 'heddle'

const floats = { T: ['f32', 'f16', 'bf16'] } as const

/** One value per row and one per column, for sums of int8: a W8A8 matmul as floats. */
export const dequantiseBoth = op('dequantise_both', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('i32', 'm n'), rowStep: tensor('f32', 'm'), columnStep: tensor('f32', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, rowStep, columnStep }) =>
    (m, c) => ({ y: x(m, c) * rowStep(m) * columnStep(c) }),
})

export const rowScale = op('row_scale', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), scale: tensor('f32', 'm') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, scale }) =>
    (m, c) => ({ y: x(m, c) * scale(m) }),
})

/** Everything that is the same along a row: an extent, attributes, the row itself. */
export const rowConstants = op('row_constants', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { a: 3, b: 7 },
  body:
    ({ x }, { n, a, b }) =>
    (m, c) => ({ y: (x(m, c) / n) * exp(a / 10) + (a / b) * m + m }),
})

/** A value per row, at an index from a table. */
export const tableScale = op('table_scale', {
  dims: ['m', 'n', 'v'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), ids: tensor('i32', 'm'), table: tensor('T', 'v n'), scale: tensor('f32', 'v') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, ids, table, scale }) =>
    (m, c) => ({ y: x(m, c) * scale(ids(m)) + table(ids(m), c) }),
})

/** Elements times a function of two sums over their row: a matmul with it may be scaled afterwards. */
export const balanced = op('balanced', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), weight: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
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
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const mean = sum(n, (c) => x(m, c)) / n
      return { y: row(n, (c) => (x(m, c) - mean) * mean) }
    },
})

/** Elements divided by the largest of their row, which is no sum. */
export const peaked = op('peaked', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
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
  inputs: { gate: tensor('T', 'm n'), up: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ gate, up }) =>
    (m, c) => ({ y: (gate(m, c) / (1 + exp(-gate(m, c)))) * up(m, c) }),
})

/** Pairs of neighbouring columns rotated by an angle per row: the partner is selected by its index, and by a condition. */
export const turnPairs = op('turn_pairs', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), angle: tensor('f32', 'm') },
  outputs: { y: tensor('T', 'm n') },
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
export const turnHalves = op('turn_halves', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, c) + x(m, c < idiv(n, 2) ? c + idiv(n, 2) : c - idiv(n, 2)) }),
})

/** Two results of one row. */
export const sumAndDifference = op('sum_and_difference', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  outputs: { total: tensor('T', 'm n'), difference: tensor('T', 'm n') },
  body:
    ({ x, y }) =>
    (m, c) => ({ total: x(m, c) + y(m, c), difference: x(m, c) - y(m, c) }),
})

/** A value of each matrix and column. */
export const matrixBias = op('matrix_bias', {
  dims: ['b', 'm', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'b m n'), bias: tensor('T', 'b n') },
  outputs: { y: tensor('T', 'b m n') },
  body:
    ({ x, bias }) =>
    (b, m, c) => ({ y: x(b, m, c) * 2 + bias(b, c) }),
})

/** A scale for each head of a row. */
export const headScale = op('head_scale', {
  dims: ['m', 'g', 'h'],
  types: floats,
  inputs: { x: tensor('T', 'm g h'), scale: tensor('f32', 'g') },
  outputs: { y: tensor('T', 'm g h') },
  body:
    ({ x, scale }) =>
    (m, g, h) => ({ y: x(m, g, h) * scale(g) }),
})

/** A gate per head: values that are constant in a head are computed once per head. */
export const headGate = op('head_gate', {
  dims: ['m', 'g', 'h'],
  types: floats,
  inputs: { x: tensor('T', 'm g h'), gate: tensor('T', 'm g h'), bias: tensor('T', 'h') },
  outputs: { y: tensor('T', 'm g h') },
  body:
    ({ x, gate, bias }, { h: length }) =>
    (m, g) => {
      const factor = exp(g / 4)
      return { y: row(length, (h) => x(m, g, h) * gate(m, g, h) * factor + bias(h)) }
    },
})

export const turnedMatrixBias = op('turned_matrix_bias', {
  dims: ['b', 'm', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'b m n'), bias: tensor('T', 'b n') },
  outputs: { y: tensor('T', 'm b n') },
  body:
    ({ x, bias }) =>
    (m, b, c) => ({ y: x(b, m, c) * 2 + bias(b, c) }),
})

export const placeBias = op('place_bias', {
  dims: ['b', 'm', 'g', 'h'],
  types: floats,
  inputs: { x: tensor('T', 'b m g h'), bias: tensor('T', 'm h') },
  outputs: { y: tensor('T', 'b m g h') },
  body:
    ({ x, bias }) =>
    (b, m, g, h) => ({ y: x(b, m, g, h) + bias(m, h) }),
})

export const middleBias = op('middle_bias', {
  dims: ['m', 'g', 'h', 'v'],
  types: floats,
  inputs: { x: tensor('T', 'm g h v'), bias: tensor('T', 'h') },
  outputs: { y: tensor('T', 'm g h v') },
  body:
    ({ x, bias }) =>
    (m, g, h, c) => ({ y: x(m, g, h, c) + bias(h) }),
})

export const headsFirst = op('heads_first', {
  dims: ['m', 'g', 'h'],
  types: floats,
  inputs: { x: tensor('T', 'm g h'), scale: tensor('f32', 'g') },
  outputs: { y: tensor('T', 'g m h') },
  body:
    ({ x, scale }) =>
    (g, m, h) => ({ y: x(m, g, h) * scale(g) }),
})

export const headPartners = op('head_partners', {
  dims: ['m', 'g', 'h'],
  types: floats,
  inputs: { x: tensor('T', 'm g h') },
  outputs: { y: tensor('T', 'm g h') },
  body:
    ({ x }) =>
    (m, g, h) => ({ y: x(m, g, h) + x(m, g, h % 2 === 0 ? h + 1 : h - 1) }),
})

export const rmsNorm = op('root_mean_square_norm', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma }, { n, eps }) =>
    (m) => {
      const scale = rsqrt(sum(n, (c) => x(m, c) ** 2) / n + eps)
      return { y: row(n, (c) => x(m, c) * scale * gamma(c)) }
    },
})

/** A weight stored as int8, with a step for each of its rows. */
export const channelWeight = op('channel_weight', {
  dims: ['n', 'k'],
  types: floats,
  inputs: { w: tensor('i8', 'n k'), step: tensor('T', 'n') },
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
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { total: tensor('f32', 'm g'), squares: tensor('f32', 'm g') },
  body:
    ({ x }, { n, g }) =>
    (m) => ({
      total: row(g, (p) => sum(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))),
      squares: row(g, (p) => sum(minimum(32, n - p * 32), (i) => x(m, p * 32 + i) ** 2)),
    }),
})

/** A row divided by the largest of its stored partial maxima. */
export const byLargest = op('by_largest', {
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), most: tensor('f32', 'm g') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, most }, { n, g }) =>
    (m) => {
      const step = 1 + abs(max(g, (p) => most(m, p)))
      return { y: row(n, (c) => x(m, c) / step) }
    },
})

/** Columns together with those that differ in one bit of their number. */
export const butterflies = op('butterflies', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, c) + ((c ^ 1) < n ? x(m, c ^ 1) : 0) - x(m, c & -4) + x(m, (c >> 1) << 1) }),
})

/** The place of the largest among all columns, found in each 32 of them. */
export const wholePlaces = op('whole_places', {
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { place: tensor('i32', 'm g') },
  body:
    ({ x }, { n, g }) =>
    (m) => ({ place: row(g, (p) => p * 32 + argmax(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))) }),
})

/** Sums of a row up to each place. */
export const sumsBefore = op('sums_before', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: sum(c + 1, (i) => x(m, i)) }),
})

/** The largest absolute value of each 32 neighbours of a row, and the place of the largest one among them. */
export const rowLargest = op('row_largest', {
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { most: tensor('f32', 'm g'), place: tensor('i32', 'm g') },
  body:
    ({ x }, { n, g }) =>
    (m) => ({
      most: row(g, (p) => max(minimum(32, n - p * 32), (i) => abs(x(m, p * 32 + i)))),
      place: row(g, (p) => argmax(minimum(32, n - p * 32), (i) => x(m, p * 32 + i))),
    }),
})

/** A sum of 32 neighbours that begin elsewhere. */
export const shiftedSums = op('shifted_sums', {
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { total: tensor('f32', 'm g') },
  body:
    ({ x }, { g }) =>
    (m) => ({ total: row(g, (p) => sum(32, (i) => x(m, p * 16 + i))) }),
})

/** A row normalised to mean 0 and variance 1 by moments of its parts. */
export const standardise = op('standardise', {
  dims: ['m', 'n', 'g'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), total: tensor('f32', 'm g'), squares: tensor('f32', 'm g') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, total, squares }, { n, g, eps }) =>
    (m) => {
      const mean = sum(g, (p) => total(m, p)) / n
      const variance = sum(g, (p) => squares(m, p)) / n - mean ** 2
      return { y: row(n, (c) => (x(m, c) - mean) * rsqrt(variance + eps)) }
    },
})

/** A copy with rows and columns exchanged. */
export const turned = op('turned', {
  dims: ['n', 'm'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'n m') },
  body:
    ({ x }) =>
    (n, m) => ({ y: x(m, n) }),
})

/** The other end of a row. */
export const reversed = op('reversed', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: x(m, n - 1 - c) / 2 }),
})

/** One name for both axes of a square matrix, and a vector that is read along either. */
export const squareBias = op('square_bias', {
  dims: ['m'],
  types: floats,
  inputs: { x: tensor('T', 'm m'), bias: tensor('T', 'm') },
  outputs: { y: tensor('T', 'm m') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: c <= m ? x(m, c) + bias(m) - 2 * bias(c) : 0 }),
})

export const vectorStep = op('vector_step', {
  dims: ['n'],
  types: floats,
  inputs: { x: tensor('T', 'n') },
  outputs: { y: tensor('T', 'n') },
  body:
    ({ x }) =>
    (n) => ({ y: x(n) * 4 + 1 }),
})

export const rowBias = op('row_bias', {
  dims: ['m', 'n'],
  types: floats,
  inputs: { x: tensor('T', 'm n'), bias: tensor('T', 'm') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: x(m, c) + bias(m) }),
})

/** One name for all axes. */
export const cube = op('cube', {
  dims: ['m'],
  types: floats,
  inputs: { x: tensor('T', 'm m m') },
  outputs: { y: tensor('T', 'm m m') },
  body:
    ({ x }) =>
    (a, b, c) => ({ y: c <= b && b <= a ? x(a, b, c) : 0 }),
})

export const bf16Only = op('bf16_only', {
  dims: ['m', 'n'],
  types: { T: ['bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) * 5 }),
})

export const noBf16 = op('no_bf16', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) * 3 }),
})
