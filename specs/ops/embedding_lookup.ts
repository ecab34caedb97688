/** One row of a table per id: ids from a caller, and words chosen by an earlier step. */
import { maximum, op, row, tensor } from 'heddle'

/** Ids lie in [0, v): the caller checks them. */
export const embeddingLookup = op('embedding_lookup', {
  dims: ['m', 'n', 'v'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { ids: tensor('i32', 'm'), table: tensor('T', 'v n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ ids, table }, { n }) =>
    (m) => {
      const id = ids(m)
      return { y: row(n, (c) => table(id, c)) }
    },
})

/**
 * Words lie below v. A word below 0 is none, after a step in which no logit was a number, or from a state that was never written. Its row is NaN, and
 * nothing before the table is read.
 */
export const wordLookup = op('word_lookup', {
  dims: ['m', 'n', 'v'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { ids: tensor('i32', 'm'), table: tensor('T', 'v n') },
  outputs: { y: tensor('T', 'm n') },
  facts: { ids: { index: 'v' } },
  body:
    ({ ids, table }, { n }) =>
    (m) => {
      const word = ids(m)
      // Added rather than selected, so that rows of the table are loaded in vectors for every word.
      const missing = word >= 0 ? 0 : Number.NaN
      return { y: row(n, (c) => table(maximum(word, 0), c) + missing) }
    },
})
