/** Linear layers of few bits: 4-bit weights before a matmul, and 8-bit rows and weights with scales after it. */
import { graph, op, tensor } from 'heddle'
import { unpackInt4 } from './kernels.js'

/** Sums of int8 times the scale of their row and that of their column. */
export const applySteps = op('apply_steps', {
  dims: ['m', 'n'],
  inputs: { x: tensor('i32', 'm n'), row: tensor('f32', 'm'), column: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x, row, column }) =>
    (m, c) => ({ y: x(m, c) * row(m) * column(c) }),
})

/** 4-bit weights with one scale for each of `g` parts of a row, unpacked in the matmul. */
export const linear4 = graph('linear4', {
  inputs: { x: tensor('T', 'm k') },
  weights: { packed: tensor('u8', 'n h'), scales: tensor('T', 'n g') },
  dims: ['k'],
  typical: { m: 16, n: 4096, k: 4096, h: 2048, g: 32 },
  build: (g, { x }, { packed, scales }) => {
    const weight = g.apply(unpackInt4, { packed, scales }, {}, { n: 'k' }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})

/** Rows and weights of eight bits. */
export const linearInt8 = graph('linear_int8', {
  inputs: { x: tensor('i8', 'm k'), row: tensor('f32', 'm') },
  weights: { w: tensor('i8', 'n k'), column: tensor('f32', 'n') },
  typical: { m: 256, n: 4096, k: 4096 },
  build: (g, { x, row }, { w, column }) => {
    const sums = g.matmul('m k, n k -> m n', x, w, { result: 'i32' })
    const y = g.apply(applySteps, { x: sums, row, column }).y
    return { nodes: { sums, y }, outputs: { y } }
  },
})
