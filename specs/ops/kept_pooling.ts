/** One row per sequence of tokens under a mask of pairs: the mean, or the first or last, of the tokens that some token attends. */
import { argmax, max, maximum, op, row, sum, tensor } from 'heddle'

/** 1 for tokens that some token of their sequence attends, 0 for others and for padding. `mask(b, s, t)` is true if token s attends token t. */
export const attendedTokens = op('attended_tokens', {
  dims: ['b', 's', 't'],
  inputs: { lengths: tensor('i32', 'b'), mask: tensor('bool', 'b s t') },
  outputs: { y: tensor('i32', 'b t') },
  facts: { lengths: { from: 1, to: 't' } },
  body:
    ({ lengths, mask }, { s: tokens }) =>
    (b, t) => {
      const attended = max(tokens, (s) => (s < lengths(b) && mask(b, s, t) ? 1 : 0))
      return { y: t < lengths(b) ? attended : 0 }
    },
})

/** The mean of the kept tokens of each sequence, added and divided in float32. Zeros if none is kept. */
export const meanKept = op('mean_kept', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), kept: tensor('i32', 'b s') },
  outputs: { y: tensor('f32', 'b n') },
  facts: { kept: { from: 0, to: 1 } },
  body:
    ({ x, kept }, { s }) =>
    (b, c) => {
      const total = sum(s, (t) => (kept(b, t) > 0 ? x(b, t, c) : 0))
      return {
        y:
          total /
          maximum(
            sum(s, (t) => kept(b, t)),
            1,
          ),
      }
    },
})

/** The first kept token of each sequence; its first token if none is kept. */
export const firstKept = op('first_kept', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), kept: tensor('i32', 'b s') },
  outputs: { y: tensor('T', 'b n') },
  facts: { kept: { from: 0, to: 1 } },
  body:
    ({ x, kept }, { s, n }) =>
    (b) => {
      const first = argmax(s, (t) => kept(b, t))
      return { y: row(n, (c) => x(b, first, c)) }
    },
})

/** The last kept token of each sequence; its first token if none is kept. */
export const lastKept = op('last_kept', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), kept: tensor('i32', 'b s') },
  outputs: { y: tensor('T', 'b n') },
  facts: { kept: { from: 0, to: 1 } },
  body:
    ({ x, kept }, { s, n }) =>
    (b) => {
      const last = argmax(s, (t) => (kept(b, t) > 0 ? t : -1))
      return { y: row(n, (c) => x(b, last, c)) }
    },
})
