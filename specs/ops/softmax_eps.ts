/** FasterTransformer's softmax over the last dimension, shifted by the row maximum: its denominator is the sum plus `eps`. */
import { exp, max, op, row, sum, tensor } from 'heddle'

export const softmaxEps = op('softmax_eps', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-6 },
  body:
    ({ x }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c)) + eps
      return { y: row(n, (c) => e(c) / total) }
    },
})
