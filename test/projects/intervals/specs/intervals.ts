/** Caches in which an interval of an axis is replaced, with every form of the condition: tensors in the conditions give its position. */
import { abs, int, layout, max, op, row, tensor } from 'heddle'

/** The condition as most write it. */
export const between = op('between', {
  dims: ['r', 'u', 'n'],
  inputs: { cache: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), first: tensor('i32', 'r'), last: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { first: { from: -3, to: 'u+3' }, last: { from: -3, to: 'u+3' } },
  body:
    ({ cache, x, first, last }) =>
    (r, u, n) => ({ y: u >= first(r) && u < last(r) ? x(r, n) : cache(r, u, n) }),
})

/** Sides exchanged, and places that are shifted before they are compared. */
export const exchanged = op('exchanged', {
  dims: ['r', 'u', 'n'],
  inputs: { cache: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), first: tensor('i32', 'r'), last: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { first: { from: -3, to: 'u+3' }, last: { from: -3, to: 'u+3' } },
  body:
    ({ cache, x, first, last }) =>
    (r, u, n) => ({ y: -1 < u - first(r) && last(r) >= 1 + u ? x(r, n) : cache(r, u, n) }),
})

/** An unlimited length: larger than any axis, so the sum of first and length exceeds 32 bits. */
export const unlimited = op('unlimited', {
  dims: ['r', 'u', 'n'],
  inputs: { cache: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), first: tensor('i32', 'r'), lengths: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { first: { from: 0, to: 'u+3' }, lengths: { from: 0, to: 2147483647 } },
  body:
    ({ cache, x, first, lengths }) =>
    (r, u, n) => {
      const at = u - first(r)
      const inside = at >= 0 && at < lengths(r)
      return { y: inside ? x(r, n) + (inside ? 1 : 2) : cache(r, u, n) }
    },
})

/** A row without an owner must not cause a read of its place. */
export const owned = op('owned', {
  dims: ['r', 'u', 'n', 'b'],
  inputs: { cache: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), owners: tensor('i32', 'r'), first: tensor('i32', 'b') },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { owners: { index: 'b', also: [-1] }, first: { from: 0, to: 'u' } },
  body:
    ({ cache, x, owners, first }) =>
    (r, u, n) => ({
      y: owners(r) >= 0 && u >= first(owners(r)) && u <= first(owners(r)) + 2 ? x(r, n) : cache(r, u, n),
    }),
})

/** The outermost axis, with places from an inner one and an attribute; further conditions are evaluated per element. */
export const outermost = op('outermost', {
  dims: ['u', 'g', 'n'],
  inputs: { cache: tensor('f32', 'u g n'), x: tensor('f32', 'g n'), last: tensor('i32', 'g'), keep: tensor('i32', 'g') },
  outputs: { y: tensor('f32', 'u g n') },
  updates: { y: 'cache' },
  attrs: { from: int(1) },
  facts: { last: { from: -3, to: 'u+3' }, keep: { values: [0, 1] } },
  body:
    ({ cache, x, last, keep }, { from }) =>
    (u, g, n) => ({ y: u > from && u < last(g) && (n < 3 || keep(g) === 0) ? x(g, n) : cache(u, g, n) }),
})

/** Two caches in one interval. */
export const together = op('together', {
  dims: ['r', 'u', 'n'],
  inputs: { keys: tensor('f32', 'r u n'), values: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), first: tensor('i32', 'r') },
  outputs: { keysAfter: tensor('f32', 'r u n'), valuesAfter: tensor('f32', 'r u n') },
  updates: { keysAfter: 'keys', valuesAfter: 'values' },
  facts: { first: { from: -3, to: 'u+3' } },
  body:
    ({ keys, values, x, first }) =>
    (r, u, n) => {
      const inside = u >= first(r) && u < first(r) + 2
      return { keysAfter: inside ? x(r, n) : keys(r, u, n), valuesAfter: inside ? -x(r, n) : values(r, u, n) }
    },
})

/** Two caches in different ones: threads go over the whole axis. */
export const apart = op('apart', {
  dims: ['r', 'u', 'n'],
  inputs: { keys: tensor('f32', 'r u n'), values: tensor('f32', 'r u n'), x: tensor('f32', 'r n'), first: tensor('i32', 'r') },
  outputs: { keysAfter: tensor('f32', 'r u n'), valuesAfter: tensor('f32', 'r u n') },
  updates: { keysAfter: 'keys', valuesAfter: 'values' },
  facts: { first: { from: -3, to: 'u+3' } },
  body:
    ({ keys, values, x, first }) =>
    (r, u, n) => ({
      keysAfter: u >= first(r) ? x(r, n) : keys(r, u, n),
      valuesAfter: u < first(r) ? -x(r, n) : values(r, u, n),
    }),
})

/** Along the axis that neighbouring threads share: the condition is evaluated per element. */
export const along = op('along', {
  dims: ['r', 'u'],
  inputs: { cache: tensor('f32', 'r u'), x: tensor('f32', 'r'), first: tensor('i32', 'r'), last: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r u') },
  updates: { y: 'cache' },
  facts: { first: { from: -3, to: 'u+3' }, last: { from: -3, to: 'u+3' } },
  body:
    ({ cache, x, first, last }) =>
    (r, u) => ({ y: u >= first(r) && u < last(r) ? x(r) : cache(r, u) }),
})

/** The new values are read place by place: no more places than they have, unless a further condition excludes some. */
export const moved = op('moved', {
  dims: ['r', 'u', 't', 'n'],
  inputs: { cache: tensor('f32', 'r u n'), x: tensor('f32', 't n'), first: tensor('i32', 'r'), lengths: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { first: { from: 0, to: 'u' }, lengths: { from: 0, to: 't' } },
  body:
    ({ cache, x, first, lengths }) =>
    (r, u, n) => {
      const at = u - first(r)
      const inside = at >= 0 && at < lengths(r)
      return { y: inside ? x(inside ? at : 0, n) : cache(r, u, n) }
    },
})

export const thinned = op('thinned', {
  dims: ['r', 'u', 't', 'n'],
  inputs: {
    cache: tensor('f32', 'r u n'),
    x: tensor('f32', 't n'),
    first: tensor('i32', 'r'),
    keep: tensor('i32', 'u'),
  },
  outputs: { y: tensor('f32', 'r u n') },
  updates: { y: 'cache' },
  facts: { first: { from: 0, to: 'u' }, keep: { values: [0, 1] }, t: { atLeast: 'u' } },
  body:
    ({ cache, x, first, keep }) =>
    (r, u, n) => {
      const inside = u >= first(r) && keep(u) === 1
      return { y: inside ? x(inside ? u - first(r) : 0, n) : cache(r, u, n) }
    },
})

/** Rows that threads of a team compute together, and their shared values. */
export const scaled = op('scaled', {
  dims: ['r', 'u', 'n'],
  inputs: {
    cache: tensor('f32', 'r u n'),
    tops: tensor('f32', 'r u'),
    x: tensor('f32', 'u n'),
    first: tensor('i32', 'r'),
    last: tensor('i32', 'r'),
  },
  outputs: { y: tensor('f32', 'r u n'), topsAfter: tensor('f32', 'r u') },
  updates: { y: 'cache', topsAfter: 'tops' },
  facts: { first: { from: -3, to: 'u+3' }, last: { from: -3, to: 'u+3' } },
  body:
    ({ cache, tops, x, first, last }, { n }) =>
    (r, u) => {
      const inside = u >= first(r) && u < last(r)
      const top = max(n, (c) => abs(x(u, c)))
      return { y: row(n, (c) => (inside ? x(u, c) - top : cache(r, u, c))), topsAfter: inside ? top : tops(r, u) }
    },
})

/** Places are adjacent in memory: neighbouring threads run along them, and evaluate the condition per place. */
export const placesLast = layout('places_last', ['r', 'u', 'n'], { offset: (at, of) => (at.r * of.n + at.n) * of.u + at.u })
export const turned = op('turned', {
  dims: ['r', 'u', 'n'],
  inputs: {
    cache: tensor('f32', 'r u n', placesLast),
    x: tensor('f32', 'r n'),
    first: tensor('i32', 'r'),
    last: tensor('i32', 'r'),
  },
  outputs: { y: tensor('f32', 'r u n', placesLast) },
  updates: { y: 'cache' },
  facts: { first: { from: -3, to: 'u+3' }, last: { from: -3, to: 'u+3' } },
  body:
    ({ cache, x, first, last }) =>
    (r, u, n) => ({ y: u >= first(r) && u < last(r) ? x(r, n) : cache(r, u, n) }),
})

/** Places counted backwards from a last one, with names that the surrounding source uses. */
export const backward = op('backward', {
  dims: ['slot', 'slots', 'interval', 'place'],
  inputs: {
    work: tensor('f32', 'slot slots interval'),
    rows: tensor('f32', 'place interval'),
    position: tensor('i32', 'slot'),
  },
  outputs: { y: tensor('f32', 'slot slots interval') },
  updates: { y: 'work' },
  facts: { position: { from: -3, to: 'slots+3' } },
  body:
    ({ work, rows, position }, { place }) =>
    (slot, slots, interval) => {
      const at = position(slot) - slots
      const inside = at >= 0 && at < place
      return { y: inside ? rows(inside ? at : 0, interval) : work(slot, slots, interval) }
    },
})
