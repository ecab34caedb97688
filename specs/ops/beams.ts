/**
 * Table by which beams share their past without copies: `beams(r, s)` is the row whose cache holds what row `r` attends at place `s`. A choice of
 * beams updates this table from their parents; caches stay unchanged.
 */
import { op, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'

/** The past of every row as one tensor for a matmul: place `s` of row `r` from the cache of row `beams(r, s)`. */
export const gatherBeams = op('gather_beams', {
  dims: ['r', 's', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { cache: tensor('T', 'r s h d', splitHeads), beams: tensor('i32', 'r s') },
  outputs: { y: tensor('T', 'r s h d', splitHeads) },
  facts: { beams: { index: 'r' } },
  body:
    ({ cache, beams }) =>
    (r, s, h, d) => ({ y: cache(beams(r, s), s, h, d) }),
})

/** The table after step `step`: each row has the past of its parent, including that step, and continues in its own cache. */
export const followParents = op('follow_parents', {
  dims: ['r', 's', 'o'],
  inputs: { beams: tensor('i32', 'r s'), parents: tensor('i32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('i32', 'r s') },
  facts: { beams: { index: 'r' }, parents: { index: 'r' }, step: { from: -1, to: 's' }, o: 1 },
  body:
    ({ beams, parents, step }) =>
    (r, s) => ({ y: s <= step(0) ? beams(parents(r), s) : r }),
})
