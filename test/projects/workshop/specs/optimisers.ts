/** Several tensors replaced in one kernel. */
import { op, sqrt, tensor } from 'heddle'

/** One step of Adam with decoupled decay: weights and both moments are replaced in place. */
export const adam = op('adam', {
  dims: ['n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { p: tensor('f32', 'n'), m: tensor('f32', 'n'), v: tensor('f32', 'n'), g: tensor('T', 'n') },
  outputs: { p2: tensor('f32', 'n'), m2: tensor('f32', 'n'), v2: tensor('f32', 'n'), stored: tensor('T', 'n') },
  // A mean of squares.
  facts: { v: { from: 0.01, to: 4 } },
  updates: { p2: 'p', m2: 'm', v2: 'v' },
  attrs: { rate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.01, scale1: 1, scale2: 1 },
  body:
    ({ p, m, v, g }, { rate, beta1, beta2, eps, decay, scale1, scale2 }) =>
    (c) => {
      const m2 = beta1 * m(c) + (1 - beta1) * g(c)
      const v2 = beta2 * v(c) + (1 - beta2) * g(c) ** 2
      const p2 = p(c) - rate * ((m2 * scale1) / (sqrt(v2 * scale2) + eps) + decay * p(c))
      return { p2, m2, v2, stored: p2 }
    },
})
