/** Ops of matrices with more axes than two, with other orders of axes, or with one name for several axes. */
import { exp, op, row, tensor } from 'heddle'
import { column, floats, heads, headValue, matrices, matrix, ofHeads, ofMatrices } from './shapes.js'

/** A value of each matrix and column. */
export const matrixBias = op('matrix_bias', {
  ...ofMatrices,
  outputs: { y: matrices },
  body:
    ({ x, bias }) =>
    (b, m, c) => ({ y: x(b, m, c) * 2 + bias(b, c) }),
})

/** A scale for each head of a row. */
export const headScale = op('head_scale', {
  ...ofHeads,
  inputs: { x: heads, scale: headValue },
  body:
    ({ x, scale }) =>
    (m, g, h) => ({ y: x(m, g, h) * scale(g) }),
})

/** A gate per head: values that are constant in a head are computed once per head. */
export const headGate = op('head_gate', {
  ...ofHeads,
  inputs: { x: heads, gate: heads, bias: tensor('T', 'h') },
  body:
    ({ x, gate, bias }, { h: length }) =>
    (m, g) => {
      const factor = exp(g / 4)
      return { y: row(length, (h) => x(m, g, h) * gate(m, g, h) * factor + bias(h)) }
    },
})

export const transposedMatrixBias = op('transposed_matrix_bias', {
  ...ofMatrices,
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
  ...ofHeads,
  inputs: { x: heads, scale: headValue },
  outputs: { y: tensor('T', 'g m h') },
  body:
    ({ x, scale }) =>
    (g, m, h) => ({ y: x(m, g, h) * scale(g) }),
})

export const headPartners = op('head_partners', {
  ...ofHeads,
  body:
    ({ x }) =>
    (m, g, h) => ({ y: x(m, g, h) + x(m, g, h % 2 === 0 ? h + 1 : h - 1) }),
})

/** A copy with rows and columns exchanged. */
export const transposed = op('transposed', {
  dims: ['n', 'm'],
  types: floats,
  inputs: { x: matrix },
  outputs: { y: tensor('T', 'n m') },
  body:
    ({ x }) =>
    (n, m) => ({ y: x(m, n) }),
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
  inputs: { x: column },
  outputs: { y: column },
  body:
    ({ x }) =>
    (n) => ({ y: x(n) * 4 + 1 }),
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
