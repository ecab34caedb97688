/**
 * Caches of keys and values in int8: each row, head and place has its own scale, its largest magnitude over 127, as a float. Caches are head by head,
 * `r g u d`, so that attention reads a head contiguously, and so are their scales. Tokens are quantised as they join a cache; attention reads an
 * integer times a scale.
 */
import { abs, idiv, max, maximum, op, row, tensor } from 'heddle'
import { toInt8 } from 'heddle/std'
import { splitHeads } from '../layouts/split_heads.js'

const floats = ['f32', 'f16', 'bf16'] as const
const caches = { cache: tensor('i8', 'r g u d'), steps: tensor('f32', 'r g u') } as const
const joined = { y: tensor('i8', 'r g u d'), stepsAfter: tensor('f32', 'r g u') } as const
const updates = { y: 'cache', stepsAfter: 'steps' } as const

/** Heads whose largest magnitude is at most this become zeros: 127 divided by less overflows float32. */
const least = 1e-30

/** One token of each row, at a place of its own. Rows whose place is outside of the cache change nothing. */
export const appendPlacesInt8 = op('append_places_int8', {
  dims: ['r', 'u', 'g', 'd'],
  types: { T: floats },
  inputs: { ...caches, x: tensor('T', 'r g d'), places: tensor('i32', 'r') },
  outputs: joined,
  updates,
  facts: { places: { from: -1, to: 'u' }, d: { upTo: 257 } },
  body:
    ({ cache, steps, x, places }, { d }) =>
    (r, g, u) => {
      const v = row(d, (c) => x(r, g, c))
      const amax = max(d, (c) => abs(v(c)))
      const inverse = amax > least ? 127 / amax : 0
      return {
        y: row(d, (c) => (u === places(r) ? toInt8(v(c) * inverse) : cache(r, g, u, c))),
        stepsAfter: u === places(r) ? amax / 127 : steps(r, g, u),
      }
    },
})

/** One token of each row, at the same place in all. */
export const appendStepInt8 = op('append_step_int8', {
  dims: ['r', 'u', 'g', 'd', 'o'],
  types: { T: floats },
  inputs: { ...caches, x: tensor('T', 'r g d'), step: tensor('i32', 'o') },
  outputs: joined,
  updates,
  facts: { step: { from: -1, to: 'u' }, o: 1, d: { upTo: 257 } },
  body:
    ({ cache, steps, x, step }, { d }) =>
    (r, g, u) => {
      const v = row(d, (c) => x(r, g, c))
      const amax = max(d, (c) => abs(v(c)))
      const inverse = amax > least ? 127 / amax : 0
      return {
        y: row(d, (c) => (u === step(0) ? toInt8(v(c) * inverse) : cache(r, g, u, c))),
        stepsAfter: u === step(0) ? amax / 127 : steps(r, g, u),
      }
    },
})

/** Runs of tokens: those of sequence `b` go to places `first(b)` and on of each cache row that it writes, as in `appendTokens`. */
export const appendTokensInt8 = op('append_tokens_int8', {
  dims: ['r', 'u', 'g', 'd', 't', 'b'],
  types: { T: floats },
  inputs: {
    ...caches,
    x: tensor('T', 't g d'),
    writers: tensor('i32', 'r'),
    starts: tensor('i32', 'b'),
    lengths: tensor('i32', 'b'),
    first: tensor('i32', 'b'),
  },
  outputs: joined,
  updates,
  facts: {
    writers: { index: 'b', also: [-1] },
    starts: { packed: 'starts', batch: 'b', rows: 't' },
    lengths: { packed: 'lengths', batch: 'b', rows: 't' },
    first: { from: 0, to: 'u' },
    d: { upTo: 257 },
  },
  body:
    ({ cache, steps, x, writers, starts, lengths, first }, { d }) =>
    (r, g, u) => {
      const sequence = maximum(writers(r), 0)
      const at = u - first(sequence)
      const inside = writers(r) >= 0 && at >= 0 && at < lengths(sequence)
      const v = row(d, (c) => x(inside ? starts(sequence) + at : 0, g, c))
      const amax = max(d, (c) => abs(v(c)))
      const inverse = amax > least ? 127 / amax : 0
      return {
        y: row(d, (c) => (inside ? toInt8(v(c) * inverse) : cache(r, g, u, c))),
        stepsAfter: inside ? amax / 127 : steps(r, g, u),
      }
    },
})

/** Heads repeated for the heads of queries that share them, as in `repeatHeads`. */
export const repeatHeadsInt8 = op('repeat_heads_int8', {
  dims: ['r', 'u', 'g', 'h', 'd'],
  types: { T: floats },
  inputs: caches,
  outputs: { y: tensor('T', 'r u h d', splitHeads) },
  facts: { h: '3*g', steps: { scales: 'cache' } },
  body:
    ({ cache, steps }, { g: shared, h: heads }) =>
    (r, u, h, d) => {
      const head = idiv(h, idiv(heads, shared))
      return { y: cache(r, head, u, d) * steps(r, head, u) }
    },
})

/** Repeated heads of the cache row of each sequence: `slots(b)`. */
export const pastHeadsInt8 = op('past_heads_int8', {
  dims: ['r', 'b', 'u', 'g', 'h', 'd'],
  types: { T: floats },
  inputs: { ...caches, slots: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b u h d', splitHeads) },
  facts: { slots: { index: 'r' }, h: '3*g', steps: { scales: 'cache' } },
  body:
    ({ cache, steps, slots }, { g: shared, h: heads }) =>
    (b, u, h, d) => {
      const head = idiv(h, idiv(heads, shared))
      return { y: cache(slots(b), head, u, d) * steps(slots(b), head, u) }
    },
})

/** Repeated heads of rows that share their past: place `u` of row `r` is in the cache of row `beams(r, u)`. */
export const beamHeadsInt8 = op('beam_heads_int8', {
  dims: ['r', 'u', 'g', 'h', 'd'],
  types: { T: floats },
  inputs: { ...caches, beams: tensor('i32', 'r u') },
  outputs: { y: tensor('T', 'r u h d', splitHeads) },
  facts: { beams: { index: 'r' }, h: '3*g', steps: { scales: 'cache' } },
  body:
    ({ cache, steps, beams }, { g: shared, h: heads }) =>
    (r, u, h, d) => {
      const head = idiv(h, idiv(heads, shared))
      return { y: cache(beams(r, u), head, u, d) * steps(beams(r, u), head, u) }
    },
})
