/**
 * Writes the keys or values of the token being decoded into their cache: those of row `r` at place `step`. The rest of the cache is neither read nor
 * written. Caches are stored head by head, so that attention reads a head contiguously.
 */
import { op, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'

export const appendStep = op('append_step', {
  dims: ['r', 's', 'h', 'd', 'o'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { cache: tensor('T', 'r s h d', splitHeads), x: tensor('T', 'r h d'), step: tensor('i32', 'o') },
  outputs: { y: tensor('T', 'r s h d', splitHeads) },
  updates: { y: 'cache' },
  facts: { step: { from: -1, to: 's' }, o: 1, d: { upTo: 257 } },
  body:
    ({ cache, x, step }) =>
    (r, s, h, d) => ({ y: s === step(0) ? x(r, h, d) : cache(r, s, h, d) }),
})
