/** Start of each sequence in a concatenation of sequences with the given lengths: exclusive prefix sums of each row. */
import { op, row, scan, tensor } from 'heddle'

export const sequenceStarts = op('std.sequence_starts', {
  dims: ['o', 'b'],
  inputs: { lengths: tensor('i32', 'o b') },
  outputs: { starts: tensor('i32', 'o b') },
  facts: { lengths: { from: 0, to: 512 } },
  body:
    ({ lengths }, { b }) =>
    (o) => {
      const ends = scan(b, (c) => lengths(o, c))
      return { starts: row(b, (c) => ends(c) - lengths(o, c)) }
    },
})
