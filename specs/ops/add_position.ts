/** Adds the learned embedding of each position: row `first + s` of the table to token `s` of every sequence. */
import { int, op, tensor } from 'heddle'

export const addPosition = op('add_position', {
  dims: ['b', 's', 'n', 'p'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), table: tensor('T', 'p n') },
  outputs: { y: tensor('T', 'b s n') },
  attrs: { first: int(0) },
  facts: { p: { atLeast: 's' } },
  body:
    ({ x, table }, { first }) =>
    (b, s, c) => ({ y: x(b, s, c) + table(first + s, c) }),
})
