/**
 * Rows of logits in parts, so that few rows still fill a device: the length of a part, and the likeliest word of each. The choice of a word reads
 * these instead of the row.
 */
import { argmax, idiv, max, minimum, op, row, tensor } from 'heddle'

/** Parts begin at multiples of this many logits, which allows wide accesses. */
const aligned = 8

/** Logits per part, for `p` parts of a row of `v`; the last parts are shorter or empty. */
export const partLength = (v: number, p: number): number => idiv(v + aligned * p - 1, aligned * p) * aligned

/**
 * Rows `r` of `v` logits in `p` parts. `tops` are the parts' largest logits: NaN if any is, -Infinity of an empty part. `ids` are their places in the
 * row, the lowest among equals; that of an empty part is meaningless.
 */
export const peaks = op('peaks', {
  dims: ['r', 'v', 'p'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v') },
  outputs: { tops: tensor('f32', 'r p'), ids: tensor('i32', 'r p') },
  body:
    ({ logits }, { v, p }) =>
    (r, q) => {
      const length = partLength(v, p)
      const first = q * length
      const count = minimum(length, v - first)
      const x = row(count, (c) => logits(r, first + c))
      return { tops: max(count, x), ids: first + argmax(count, x) }
    },
})
