/** Convolutions in users' style, ops after them, and other windows over images. */
import { idiv, maximum, minimum, op, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16'] } as const

/** Windows of any size over all channels; `p` and `q` are as large as the result and its margins. */
export const convolve = op('convolve', {
  dims: ['b', 'o', 'h', 'w', 'c', 'u', 'v', 'p', 'q'],
  types,
  inputs: { x: tensor('T', 'b c p q'), kernel: tensor('T', 'o c u v') },
  outputs: { y: tensor('T', 'b o h w') },
  facts: { p: 'h+2', q: 'w+2', u: 3, v: 3, w: { upTo: 65 } },
  body:
    ({ x, kernel }, { c, u, v }) =>
    (b, o, h, w) => ({ y: sum(c, (l) => sum(u, (i) => sum(v, (j) => x(b, l, h + i, w + j) * kernel(o, l, i, j)))) }),
})

/** A bias per channel, clipped to the range from 0 to 6. */
export const biasClipped = op('bias_clipped', {
  dims: ['b', 'c', 'h', 'w'],
  types,
  inputs: { x: tensor('T', 'b c h w'), bias: tensor('T', 'c') },
  outputs: { y: tensor('T', 'b c h w') },
  body:
    ({ x, bias }) =>
    (b, c, h, w) => ({ y: minimum(maximum(x(b, c, h, w) + bias(c), 0), 6) }),
})

/** Each channel separately, with zeros around the image and a stride of two. */
export const depthwise = op('depthwise', {
  dims: ['b', 'c', 'h', 'w', 'u', 'v', 'p', 'q'],
  types,
  inputs: { x: tensor('T', 'b c p q'), kernel: tensor('T', 'c u v') },
  outputs: { y: tensor('T', 'b c h w') },
  facts: { p: '2*h', q: '2*w', u: 3, v: 3, w: { upTo: 65 } },
  body:
    ({ x, kernel }, { u, v, p, q }) =>
    (b, c, h, w) => {
      const top = 2 * h - 1
      const left = 2 * w - 1
      const total = sum(u, (i) =>
        sum(v, (j) => {
          const isInside = top + i >= 0 && top + i < p && left + j >= 0 && left + j < q
          return isInside ? x(b, c, top + i, left + j) * kernel(c, i, j) : 0
        }),
      )
      return { y: total }
    },
})

/** Means of parts of an image, for any number of parts: each part knows its own size. */
export const adaptivePool = op('adaptive_pool', {
  dims: ['b', 'c', 'h', 'w', 'p', 'q'],
  types,
  inputs: { x: tensor('T', 'b c p q') },
  outputs: { y: tensor('T', 'b c h w') },
  facts: { w: { upTo: 65 } },
  body:
    ({ x }, { h, w, p, q }) =>
    (b, c, i, j) => {
      const top = idiv(i * p, h)
      const left = idiv(j * q, w)
      const rows = idiv((i + 1) * p + h - 1, h) - top
      const columns = idiv((j + 1) * q + w - 1, w) - left
      return { y: sum(minimum(16, rows), (u) => sum(columns, (v) => x(b, c, top + u, left + v))) / (minimum(16, rows) * columns) }
    },
})

/** The sum of each of many small matrices, and of their squares. */
export const matrixSums = op('matrix_sums', {
  dims: ['b', 'm', 'n'],
  types,
  inputs: { x: tensor('T', 'b m n') },
  outputs: { total: tensor('f32', 'b'), squares: tensor('f32', 'b') },
  body:
    ({ x }, { m, n }) =>
    (b) => ({ total: sum(m, (r) => sum(n, (c) => x(b, r, c))), squares: sum(m, (r) => sum(n, (c) => x(b, r, c) ** 2)) }),
})

/** 4-bit weights, eight per word, in an order of their own, with a table of sixteen values. */
export const unpackWords = op('unpack_words', {
  dims: ['k', 'w', 'n', 't'],
  types,
  inputs: { words: tensor('i32', 'k w'), table: tensor('f32', 't') },
  outputs: { y: tensor('T', 'k n') },
  facts: { n: '8*w', t: 16 },
  body:
    ({ words, table }) =>
    (k, n) => {
      const lane = n % 8
      const shift = 4 * (lane % 2 === 0 ? idiv(lane, 2) : 4 + idiv(lane, 2))
      return { y: table((words(k, idiv(n, 8)) >> shift) & 15) }
    },
})
