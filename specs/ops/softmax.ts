/** Softmax over the last dimension, shifted by the row maximum. */
import { exp, max, op, row, sum, tensor } from 'heddle'

export const softmax = op('softmax', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c))
      return { y: row(n, (c) => e(c) / total) }
    },
})
