/** Layer normalisation over the last dimension (Ba, Kiros, Hinton 2016), two-pass statistics. */
import { op, row, rsqrt, sum, tensor } from 'heddle'

export const layerNorm = op('layer_norm', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n'), beta: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-12 },
  body:
    ({ x, gamma, beta }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c)) / n
      const variance = sum(n, (c) => (v(c) - mean) ** 2) / n
      return { y: row(n, (c) => (v(c) - mean) * rsqrt(variance + eps) * gamma(c) + beta(c)) }
    },
})
