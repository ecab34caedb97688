/** Texts from the tree that beams leave, on the device: FasterTransformer's gather_tree, as one kernel. */
import { fold, op, row, tensor, toInt } from 'heddle'

/**
 * Words on the path to each row after the last of `steps(0)` steps: texts(i, r) is the word of step i. Each step stores, for every row, its word and
 * the row of the step before that it continues. Steps that were not taken have -1. There are at most 1024 rows; words are carried as floats, which
 * hold every id below 2^24.
 */
export const gatherTree = op('gather_tree', {
  dims: ['s', 'r', 'o'],
  inputs: { words: tensor('i32', 's r'), parents: tensor('i32', 's r'), steps: tensor('i32', 'o') },
  outputs: { texts: tensor('i32', 's r') },
  facts: {
    words: { from: 0, to: 1000 },
    parents: { index: 'r' },
    steps: { from: 0, to: 's' },
    o: 1,
    s: { upTo: 40 },
    r: { upTo: 257 },
  },
  body:
    ({ words, parents, steps }, { s, r }) =>
    (i) => {
      const found = fold(s, { word: row(r, () => -1) }, ({ word }, t) => ({
        word: row(r, (c) => (t < steps(0) && t > i ? word(parents(t, c)) : t < steps(0) && t === i ? words(t, c) : word(c))),
      }))
      return { texts: row(r, (c) => toInt(found.word(c))) }
    },
})
