/** Steps of optimisers and of images, with states in few bits. */
import { abs, idiv, max, maximum, op, row, sqrt, sum, tensor, toFloat } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Adam whose moments are a byte with a scale for 256 each. */
export const adamOfBytes = op('adam_of_bytes', {
  dims: ['n', 'g'],
  types,
  inputs: {
    p: tensor('T', 'n'),
    grad: tensor('T', 'n'),
    m: tensor('i8', 'n'),
    ms: tensor('f32', 'g'),
    v: tensor('u8', 'n'),
    vs: tensor('f32', 'g'),
  },
  outputs: { next: tensor('T', 'n') },
  attrs: { rate: 0.001, beta1: 0.9, beta2: 0.999 },
  facts: { n: '256*g' },
  body:
    ({ p, grad, m, ms, v, vs }, { rate, beta1, beta2 }) =>
    (c) => {
      const first = beta1 * m(c) * ms(idiv(c, 256)) + (1 - beta1) * grad(c)
      const second = beta2 * v(c) * vs(idiv(c, 256)) + (1 - beta2) * grad(c) ** 2
      return { next: p(c) - (rate * first) / (sqrt(second) + 1e-8) }
    },
})

/** A state in int8 with a scale for each block. */
export const stateInBytes = op('state_in_bytes', {
  dims: ['g', 'k'],
  types,
  inputs: { x: tensor('T', 'g k') },
  outputs: { q: tensor('i8', 'g k'), s: tensor('f32', 'g') },
  facts: { k: 256 },
  body:
    ({ x }, { k }) =>
    (g) => {
      const s =
        maximum(
          max(k, (c) => abs(x(g, c))),
          1e-12,
        ) / 127
      return { q: row(k, (c) => x(g, c) / s), s }
    },
})

/** Lion: the sign of a moving mean. */
export const lion = op('lion', {
  dims: ['n'],
  types,
  inputs: { p: tensor('T', 'n'), grad: tensor('T', 'n'), m: tensor('f32', 'n') },
  outputs: { next: tensor('T', 'n'), moved: tensor('f32', 'n') },
  attrs: { rate: 0.0001, beta1: 0.9, beta2: 0.99, decay: 0.1 },
  body:
    ({ p, grad, m }, { rate, beta1, beta2, decay }) =>
    (c) => {
      const u = beta1 * m(c) + (1 - beta1) * grad(c)
      const sign = u > 0 ? 1 : u < 0 ? -1 : 0
      return { next: p(c) * (1 - rate * decay) - rate * sign, moved: beta2 * m(c) + (1 - beta2) * grad(c) }
    },
})

/** Images of bytes with channels last, as planes of numbers. */
export const toPlanes = op('to_planes', {
  dims: ['b', 'c', 'h', 'w'],
  types,
  inputs: { image: tensor('u8', 'b h w c'), mean: tensor('f32', 'c'), inverse: tensor('f32', 'c') },
  outputs: { y: tensor('T', 'b c h w') },
  body:
    ({ image, mean, inverse }) =>
    (b, c, h, w) => ({ y: (image(b, h, w, c) / 255 - mean(c)) * inverse(c) }),
})

/** Twice the size, from four times the channels. */
export const pixelShuffle = op('pixel_shuffle', {
  dims: ['b', 'c', 'h', 'w', 'q', 'y', 'x'],
  types,
  inputs: { input: tensor('T', 'b q h w') },
  outputs: { output: tensor('T', 'b c y x') },
  facts: { q: '4*c', y: '2*h', x: '2*w' },
  body:
    ({ input }) =>
    (b, c, y, x) => ({ output: input(b, 4 * c + 2 * (y % 2) + (x % 2), idiv(y, 2), idiv(x, 2)) }),
})

/** Patches of 16 x 16 as rows. */
export const patchRows = op('patch_rows', {
  dims: ['b', 'n', 'p', 'c', 'h', 'w', 'v'],
  types,
  inputs: { image: tensor('T', 'b c h w') },
  outputs: { y: tensor('T', 'b n p') },
  facts: { p: '256*c', w: '16*v', n: { atLeast: 1 }, h: '16*n' },
  body:
    ({ image }, { v }) =>
    (b, n, p) => ({ y: image(b, idiv(p, 256), idiv(n, v) * 16 + idiv(p % 256, 16), (n % v) * 16 + (p % 16)) }),
})

/** Means of 8 neighbours of a row. */
export const pooledRow = op('pooled_row', {
  dims: ['m', 'n', 'k'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm k') },
  facts: { n: '8*k' },
  body:
    ({ x }) =>
    (m, c) => ({ y: sum(8, (i) => x(m, 8 * c + i)) / 8 }),
})

/** Each element, and how far it is from the mean of its eighth of the row. */
export const besideMean = op('beside_mean', {
  dims: ['m', 'n', 'k'],
  types,
  inputs: { x: tensor('T', 'm n'), means: tensor('f32', 'm k') },
  outputs: { y: tensor('T', 'm n'), place: tensor('f32', 'm n') },
  facts: { n: '8*k' },
  body:
    ({ x, means }) =>
    (m, c) => ({ y: x(m, c) - means(m, idiv(c, 8)), place: toFloat(c % 8) }),
})
