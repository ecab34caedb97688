/** A linear layer with a bias, and three plans that store its operands as int8. */
import { graph, op, plan, tensor } from 'heddle'

// #region graph
export const bias = op('bias', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), by: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, by }) =>
    (m, c) => ({ y: x(m, c) + by(c) }),
})

export const linear = graph('linear', {
  inputs: { x: tensor('T', 'm k') },
  weights: { weight: tensor('T', 'n k'), by: tensor('T', 'n') },
  typical: { m: 4096, n: 768, k: 768 },
  build: (g, { x }, { weight, by }) => {
    const product = g.matmul('m k, n k -> m n', x, weight)
    const y = g.apply(bias, { x: product, by }).y
    return { nodes: { product, y }, outputs: { y } }
  },
})
// #endregion

// #region plans
/** Scales are measured beforehand and given at load. */
export const calibrated = plan('calibrated', linear, {
  quantised: { values: ['x'] },
  groups: { int8_matmul_bias: ['product', 'product.float', 'y'] },
})

/** Every row is quantised by its own largest magnitude: no calibration is needed. */
export const dynamic = plan('dynamic', linear, {
  quantised: { dynamic: ['x'] },
  groups: { int8_matmul_rows_bias: ['product', 'product.float', 'y'] },
})

/** Weight-only: half as many bytes as f16, for matmuls of few rows. */
export const weightOnly = plan('weight-only', linear, {
  quantised: { weightOnly: ['product'] },
  groups: { matmul_channels_bias: ['product', 'product.float', 'y'] },
})
// #endregion

export const graphs = { linear }
export const plans = [calibrated, dynamic, weightOnly]
