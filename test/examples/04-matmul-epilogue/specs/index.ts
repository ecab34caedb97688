/** A feed-forward network: the ops after each matmul run before the matmul is stored. */
import { gelu, graph, op, plan, tensor } from 'heddle'

// #region ops
const types = { T: ['f32', 'f16', 'bf16'] } as const
const matrix = tensor('T', 'm n')

export const addBias = op('bias', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix, bias: tensor('T', 'n') },
  outputs: { y: matrix },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: x(m, c) + bias(c) }),
})

export const activate = op('activate', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix },
  outputs: { y: matrix },
  body:
    ({ x }) =>
    (m, c) => ({ y: gelu(x(m, c)) }),
})

export const addTo = op('add_to', {
  dims: ['m', 'n'],
  types,
  inputs: { x: matrix, before: matrix },
  outputs: { y: matrix },
  body:
    ({ x, before }) =>
    (m, c) => ({ y: x(m, c) + before(m, c) }),
})
// #endregion

// #region graph
export const feedForward = graph('feed_forward', {
  inputs: { x: tensor('T', 'm n') },
  weights: { up: tensor('T', 'k n'), upBias: tensor('T', 'k'), down: tensor('T', 'n k'), downBias: tensor('T', 'n') },
  typical: { m: 4096, n: 768, k: 3072 },
  build: (g, { x }, { up, upBias, down, downBias }) => {
    const inner = g.matmul('m n, k n -> m k', x, up)
    const biased = g.apply(addBias, { x: inner, bias: upBias }).y
    const active = g.apply(activate, { x: biased }).y
    const outer = g.matmul('m k, n k -> m n', active, down)
    const shifted = g.apply(addBias, { x: outer, bias: downBias }).y
    const y = g.apply(addTo, { x: shifted, before: x }).y
    return { nodes: { inner, biased, active, outer, shifted, y }, outputs: { y } }
  },
})
// #endregion

// #region plan
export const fused = plan('fused', feedForward, {
  groups: {
    matmul_bias_gelu: ['inner', 'biased', 'active'],
    matmul_bias_residual: ['outer', 'shifted', 'y'],
  },
})
// #endregion

export const graphs = { feedForward }
export const plans = [fused]
