/** One row per sequence of tokens: their mean, or the last of them; and rows of length one. Tokens at or beyond a length are padding. */
import { maximum, op, row, sqrt, sum, tensor } from 'heddle'

/** The mean of each sequence's tokens, added and divided in float32. */
export const meanTokens = op('mean_tokens', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('f32', 'b n') },
  facts: { lengths: { from: 1, to: 's' } },
  body:
    ({ x, lengths }, { s }) =>
    (b, c) => ({ y: sum(s, (t) => (t < lengths(b) ? x(b, t, c) : 0)) / lengths(b) }),
})

/** The last token of each sequence. */
export const lastToken = op('last_token', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b n') },
  facts: { lengths: { from: 1, to: 's' } },
  body:
    ({ x, lengths }, { n }) =>
    (b) => {
      const last = lengths(b) - 1
      return { y: row(n, (c) => x(b, last, c)) }
    },
})

/** Rows divided by their Euclidean length, or by `eps` if that is larger: a row of zeros stays zero. */
export const unitRows = op('unit_rows', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-12 },
  body:
    ({ x }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const length = maximum(sqrt(sum(n, (c) => v(c) ** 2)), eps)
      return { y: row(n, (c) => v(c) / length) }
    },
})
