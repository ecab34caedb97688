/** One row of a table for each id: ids that a caller gives, and words that a step before has chosen. */
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
 * Words lie below v. One below 0 is none, as where no logit was a number or a state was never written: its row is NaN, and nothing in front
 * of the table is read.
 */
export const wordLookup = op('word_lookup', {
  dims: ['m', 'n', 'v'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { ids: tensor('i32', 'm'), table: tensor('T', 'v n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ ids, table }, { n }) =>
    (m) => {
      const word = ids(m)
      // Added rather than chosen: rows of the table are loaded in vectors whatever the word.
      const missing = word >= 0 ? 0 : Number.NaN
      return { y: row(n, (c) => table(maximum(word, 0), c) + missing) }
    },
})
