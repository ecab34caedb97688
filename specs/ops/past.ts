/**
 * The past of causal attention in caches that persist from step to step: cache row `r` holds keys or values of heads `g` at places `u`. Caches are
 * stored head by head, so that attention reads a head contiguously.
 */
import { idiv, maximum, op, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'

/** One token of each row joins its cache, at a place of its own. Rows whose place is outside of the cache change nothing. */
export const appendPlaces = op('append_places', {
  dims: ['r', 'u', 'g', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { cache: tensor('T', 'r u g d', splitHeads), x: tensor('T', 'r g d'), places: tensor('i32', 'r') },
  outputs: { y: tensor('T', 'r u g d', splitHeads) },
  updates: { y: 'cache' },
  facts: { places: { from: -1, to: 'u' }, d: { upTo: 257 } },
  body:
    ({ cache, x, places }) =>
    (r, u, g, d) => ({ y: u === places(r) ? x(r, g, d) : cache(r, u, g, d) }),
})

/**
 * Many tokens join their caches: those of sequence `b` are rows `starts(b)` and on of `x`, `lengths(b)` of them, and go to places `first(b)` and on
 * of each cache row that sequence `b` writes. `writers(r)` is that sequence, or -1 if a cache row stays unchanged.
 */
export const appendTokens = op('append_tokens', {
  dims: ['r', 'u', 'g', 'd', 't', 'b'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: {
    cache: tensor('T', 'r u g d', splitHeads),
    x: tensor('T', 't g d'),
    writers: tensor('i32', 'r'),
    starts: tensor('i32', 'b'),
    lengths: tensor('i32', 'b'),
    first: tensor('i32', 'b'),
  },
  outputs: { y: tensor('T', 'r u g d', splitHeads) },
  updates: { y: 'cache' },
  facts: {
    writers: { index: 'b', also: [-1] },
    starts: { packed: 'starts', batch: 'b', rows: 't' },
    lengths: { packed: 'lengths', batch: 'b', rows: 't' },
    first: { from: 0, to: 'u' },
    d: { upTo: 257 },
  },
  body:
    ({ cache, x, writers, starts, lengths, first }) =>
    (r, u, g, d) => {
      const sequence = maximum(writers(r), 0)
      const at = u - first(sequence)
      const inside = writers(r) >= 0 && at >= 0 && at < lengths(sequence)
      return { y: inside ? x(inside ? starts(sequence) + at : 0, g, d) : cache(r, u, g, d) }
    },
})

/** Heads of keys and values repeated for the heads of queries that share them: `h` is a multiple of `g`, and adjacent heads share one. */
export const repeatHeads = op('repeat_heads', {
  dims: ['r', 'u', 'g', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'r u g d', splitHeads) },
  outputs: { y: tensor('T', 'r u h d', splitHeads) },
  facts: { h: '3*g' },
  body:
    ({ x }, { g: shared, h: heads }) =>
    (r, u, h, d) => ({ y: x(r, u, idiv(h, idiv(heads, shared)), d) }),
})

/** Repeated heads of the cache row of each sequence: `slots(b)`. */
export const pastHeads = op('past_heads', {
  dims: ['r', 'b', 'u', 'g', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { cache: tensor('T', 'r u g d', splitHeads), slots: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b u h d', splitHeads) },
  facts: { slots: { index: 'r' }, h: '3*g' },
  body:
    ({ cache, slots }, { g: shared, h: heads }) =>
    (b, u, h, d) => ({ y: cache(slots(b), u, idiv(h, idiv(heads, shared)), d) }),
})

/** Repeated heads of rows that share their past: place `u` of row `r` is in the cache of row `beams(r, u)`. */
export const beamHeads = op('beam_heads', {
  dims: ['r', 'u', 'g', 'h', 'd'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { cache: tensor('T', 'r u g d', splitHeads), beams: tensor('i32', 'r u') },
  outputs: { y: tensor('T', 'r u h d', splitHeads) },
  facts: { beams: { index: 'r' }, h: '3*g' },
  body:
    ({ cache, beams }, { g: shared, h: heads }) =>
    (r, u, h, d) => ({ y: cache(beams(r, u), u, idiv(h, idiv(heads, shared)), d) }),
})
