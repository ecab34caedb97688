/** An op: its inputs and outputs, and a body, which is an ordinary function that you can call and step through. */
import { op, row, rsqrt, sum, tensor } from 'heddle'

/** Root mean square normalisation of rows of `n` elements. */
export const rmsNorm = op('rms_norm', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-6 },
  body:
    ({ x, gamma }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c) ** 2) / n
      return { y: row(n, (c) => v(c) * rsqrt(mean + eps) * gamma(c)) }
    },
})
