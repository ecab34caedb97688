/** Sorted rows. */
import { argsort, op, row, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Each row in ascending order, where its elements stood, and their places in descending order. */
export const sortRows = op('sort_rows', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { sorted: tensor('T', 'm n'), places: tensor('i32', 'm n'), descending: tensor('i32', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const order = argsort(600, n, (c) => x(m, c))
      const down = argsort(600, n, (c) => -x(m, c))
      return { sorted: row(n, (c) => x(m, order(c))), places: row(n, (c) => order(c)), descending: row(n, (c) => down(c)) }
    },
})

/** Tokens by their expert, in their original order: the dispatch of a mixture of experts. */
export const byExpert = op('by_expert', {
  dims: ['b', 's'],
  inputs: { expert: tensor('i32', 'b s'), gate: tensor('f32', 'b s') },
  outputs: { token: tensor('i32', 'b s'), weight: tensor('f32', 'b s') },
  facts: { expert: { from: 0, to: 8 } },
  body:
    ({ expert, gate }, { s }) =>
    (b) => {
      const order = argsort(4096, s, (t) => expert(b, t))
      return { token: row(s, (t) => order(t)), weight: row(s, (t) => gate(b, order(s - 1 - t))) }
    },
})
