/**
 * Root mean square normalisation over the last dimension (Zhang, Sennrich 2019). `offset` is added to the learned factors: 0 in LLaMA, 1 if a
 * checkpoint stores their distance from 1.
 */
import { op, row, rsqrt, sum, tensor } from 'heddle'

export const rmsNorm = op('rms_norm', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-5, offset: 0 },
  body:
    ({ x, gamma }, { n, eps, offset }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const inverse = rsqrt(sum(n, (c) => v(c) ** 2) / n + eps)
      return { y: row(n, (c) => v(c) * inverse * (gamma(c) + offset)) }
    },
})
