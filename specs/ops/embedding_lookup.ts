/** Gathers one row of a table for each id. Ids lie in [0, v): the caller checks them. */
import { op, row, tensor } from 'heddle'

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
