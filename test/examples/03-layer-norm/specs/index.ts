/** A residual followed by a layer norm: two ops, a graph of them, and plans for their kernels. */
import { graph, op, plan, row, rsqrt, sum, tensor } from 'heddle'

// #region ops
export const residual = op('residual', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), before: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, before }) =>
    (m, c) => ({ y: x(m, c) + before(m, c) }),
})

export const layerNorm = op('layer_norm', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n'), beta: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gamma, beta }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c)) / n
      const variance = sum(n, (c) => (v(c) - mean) ** 2) / n
      return { y: row(n, (c) => (v(c) - mean) * rsqrt(variance + eps) * gamma(c) + beta(c)) }
    },
})
// #endregion

// #region graph
export const sublayer = graph('sublayer', {
  inputs: { x: tensor('T', 'm n'), before: tensor('T', 'm n') },
  weights: { gamma: tensor('T', 'n'), beta: tensor('T', 'n') },
  typical: { m: 4096, n: 768 },
  build: (g, { x, before }, { gamma, beta }) => {
    const added = g.apply(residual, { x, before }).y
    const normed = g.apply(layerNorm, { x: added, gamma, beta }).y
    return { nodes: { added, normed }, outputs: { added, normed } }
  },
})
// #endregion

// #region plans
export const fused = plan('fused', sublayer, { groups: { residual_layer_norm: ['added', 'normed'] } })

export const byWarp = plan('by-warp', sublayer, {
  groups: { residual_layer_norm_by_warp: ['added', 'normed'] },
  schedules: {
    residual_layer_norm_by_warp: { kind: 'rows', team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 }, chunks: 8, vec: 4 },
  },
})

export const graphs = { sublayer }
export const plans = [fused, byWarp]
// #endregion
