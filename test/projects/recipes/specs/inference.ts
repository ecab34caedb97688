/** Gates, positions, quantisers, sampling and sequences. */
import {
  abs,
  argsort,
  cos,
  exp,
  foldRow,
  gelu,
  histogram,
  idiv,
  max,
  maximum,
  minimum,
  monoid,
  op,
  row,
  sin,
  sum,
  tensor,
  threshold,
  toFloat,
} from 'heddle'

export const geglu = op('geglu', {
  dims: ['m', 'n', 'n2'],
  facts: { n2: '2*n' },
  inputs: { x: tensor('f32', 'm n2') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x }, { n }) =>
    (m, c) => ({ y: gelu(x(m, 0 + c)) * x(m, n + c) }),
})

/** Rotary positions of neighbouring pairs (GPT-J), for the first `turned` elements of a head. */
export const rotaryPairs = op('rotary_pairs', {
  dims: ['s', 'd'],
  inputs: { x: tensor('f32', 's d'), position: tensor('i32', 's') },
  outputs: { y: tensor('f32', 's d') },
  attrs: { turned: 4 },
  facts: { position: { from: 0, to: 64 } },
  body:
    ({ x, position }, { d, turned }) =>
    (s) => ({
      y: row(d, (c) => {
        const angle = position(s) * exp((-9.210340371976184 * 2 * idiv(c, 2)) / turned)
        const partner = c % 2 === 0 ? minimum(c + 1, d - 1) : c - 1
        const across = c % 2 === 0 ? -x(s, partner) : x(s, partner)
        return toFloat(c) < turned ? x(s, c) * cos(angle) + across * sin(angle) : x(s, c)
      }),
    }),
})

/** 8-bit floats with a scale for each group of a row. */
export const groupFloat8 = op('group_float8', {
  dims: ['m', 'g', 'k'],
  inputs: { x: tensor('f32', 'm g k') },
  outputs: { q: tensor('f8e4m3', 'm g k'), scale: tensor('f32', 'm g') },
  body:
    ({ x }, { k }) =>
    (m, g) => {
      const scale =
        maximum(
          max(k, (c) => abs(x(m, g, c))),
          1e-12,
        ) / 448
      return { q: row(k, (c) => x(m, g, c) / scale), scale }
    },
})

/** 4-bit integers, one a byte, with a scale for each group. */
export const groupInt4 = op('group_int4', {
  dims: ['m', 'g', 'k'],
  inputs: { x: tensor('f32', 'm g k') },
  outputs: { q: tensor('i8', 'm g k'), scale: tensor('f32', 'm g') },
  body:
    ({ x }, { k }) =>
    (m, g) => {
      const scale =
        maximum(
          max(k, (c) => abs(x(m, g, c))),
          1e-12,
        ) / 7
      return { q: row(k, (c) => x(m, g, c) / scale), scale }
    },
})

/** Two of them a byte: 8 is zero. */
export const packInt4 = op('pack_int4', {
  dims: ['m', 'k', 'k2'],
  facts: { k2: '2*k', q: { from: -7, to: 7 } },
  inputs: { q: tensor('i16', 'm k2') },
  outputs: { packed: tensor('u8', 'm k') },
  body:
    ({ q }) =>
    (m, c) => ({ packed: (q(m, 2 * c) + 8) | ((q(m, 2 * c + 1) + 8) << 4) }),
})

/** Keeps the fewest tokens whose probabilities reach p, the most likely first. */
export const topP = op('top_p', {
  dims: ['m', 'n'],
  inputs: { p: tensor('f32', 'm n') },
  outputs: { kept: tensor('f32', 'm n') },
  facts: { p: { from: 0, to: 1 } },
  attrs: { mass: 0.9 },
  body:
    ({ p }, { n, mass }) =>
    (m) => {
      const least = threshold(
        n,
        mass * sum(n, (c) => p(m, c)),
        (c) => p(m, c),
        (c) => p(m, c),
      )
      return { kept: row(n, (c) => (p(m, c) >= least ? p(m, c) : 0)) }
    },
})

/** Counts of each of some classes in a row. */
export const classCounts = op('class_counts', {
  dims: ['m', 'n', 'k'],
  inputs: { label: tensor('i32', 'm n') },
  outputs: { count: tensor('i32', 'm k') },
  body:
    ({ label }, { n, k }) =>
    (m) => ({ count: histogram(k, n, (c) => label(m, c)) }),
})

const largest = monoid({ identity: { top: Number.NEGATIVE_INFINITY }, combine: (x, y) => ({ top: maximum(x.top, y.top) }) })

/** The largest so far. */
export const cumulativeMax = op('cumulative_max', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const tops = largest.scan(n, (c) => ({ top: x(m, c) }))
      return { y: row(n, (c) => tops.top(c)) }
    },
})

/** A damped spring: two states, each of which reads the other. */
export const spring = op('spring', {
  dims: ['m', 'n'],
  inputs: { force: tensor('f32', 'm n') },
  outputs: { place: tensor('f32', 'm n'), energy: tensor('f32', 'm') },
  attrs: { stiffness: 0.3, damping: 0.1 },
  body:
    ({ force }, { n, stiffness, damping }) =>
    (m) => {
      const step = ({ at, speed }: { at: number; speed: number }, t: number) => {
        const next = speed + force(m, t) - stiffness * at - damping * speed
        return { at: at + next, speed: next }
      }
      const path = foldRow(n, { at: 0, speed: 0 }, step)
      return { place: row(n, (t) => path.at(t)), energy: sum(n, (t) => path.speed(t) ** 2) }
    },
})

/** Sorted within segments, which keep their order. */
export const segmentSort = op('segment_sort', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), segment: tensor('i32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  facts: { x: { from: -8, to: 8 }, segment: { from: 0, to: 4 } },
  body:
    ({ x, segment }, { n }) =>
    (m) => {
      const byValue = argsort(512, n, (c) => x(m, c))
      const order = argsort(512, n, (c) => segment(m, byValue(c)))
      return { y: row(n, (c) => x(m, byValue(order(c)))) }
    },
})
