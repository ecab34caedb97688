/** Ops of a layer that is not shipped. */
import { op, row, rsqrt, sum, tensor } from 'heddle'

const floats = ['f32', 'f16', 'bf16'] as const

/** Rows divided by the root of their mean square. */
export const mixNorm = op('mix_norm', {
  dims: ['r', 'c'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r c'), gain: tensor('T', 'c') },
  outputs: { y: tensor('T', 'r c') },
  attrs: { eps: 1e-5 },
  body:
    ({ x, gain }, { c, eps }) =>
    (r) => {
      const scale = rsqrt(sum(c, (i) => x(r, i) * x(r, i)) / c + eps)
      return { y: row(c, (i) => x(r, i) * scale * gain(i)) }
    },
})

export const shift = op('shift', {
  dims: ['r', 'c'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r c'), by: tensor('T', 'c') },
  outputs: { y: tensor('T', 'r c') },
  body:
    ({ x, by }) =>
    (r, c) => ({ y: x(r, c) + by(c) }),
})

export const leaky = op('leaky', {
  dims: ['r', 'c'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r c') },
  outputs: { y: tensor('T', 'r c') },
  attrs: { slope: 0.01 },
  body:
    ({ x }, { slope }) =>
    (r, c) => ({ y: x(r, c) < 0 ? slope * x(r, c) : x(r, c) }),
})

/** Every part is a share of the row. */
export const split = op('split', {
  dims: ['r', 'q', 'c'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r c') },
  outputs: { y: tensor('T', 'r q c') },
  body:
    ({ x }, { q }) =>
    (r, part, c) => ({ y: (x(r, c) * (part + 1)) / q }),
})
