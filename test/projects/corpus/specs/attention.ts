/** Attention whose keys and values are computed while they are loaded: pages, caches of few bits, positions. */
import { exp, graph, idiv, max, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Keys or values of a sequence, with a table that maps its parts to pages. */
export const gatherPages = op('gather_pages', {
  dims: ['b', 't', 'h', 'd', 'n', 'p', 'q'],
  types,
  inputs: { cache: tensor('T', 'n p h d'), table: tensor('i32', 'b q') },
  outputs: { y: tensor('T', 'b h t d') },
  facts: { table: { index: 'n' }, t: 'q*p' },
  body:
    ({ cache, table }, { p }) =>
    (b, h, t, d) => ({ y: cache(table(b, idiv(t, p)), t % p, h, d) }),
})

/** Keys or values of int8 with a scale for each place of a head. */
export const ofInt8 = op('of_int8', {
  dims: ['b', 'h', 't', 'd'],
  types,
  inputs: { x: tensor('i8', 'b h t d'), scale: tensor('T', 'b h t') },
  outputs: { y: tensor('T', 'b h t d') },
  body:
    ({ x, scale }) =>
    (b, h, t, d) => ({ y: x(b, h, t, d) * scale(b, h, t) }),
})

/** The same of 8-bit floats with a scale for each head and each 32 of its elements. */
export const ofFloat8 = op('of_float8', {
  dims: ['b', 'h', 't', 'd', 'e'],
  types,
  inputs: { x: tensor('f8e4m3', 'b h t d'), scale: tensor('T', 'h e') },
  outputs: { y: tensor('T', 'b h t d') },
  facts: { d: '32*e' },
  body:
    ({ x, scale }) =>
    (b, h, t, d) => ({ y: x(b, h, t, d) * scale(h, idiv(d, 32)) }),
})

/** Probabilities of scores up to a length of each sequence. */
export const weighRagged = op('weigh_ragged', {
  dims: ['b', 'h', 's', 't'],
  types,
  inputs: { x: tensor('T', 'b h s t'), length: tensor('i32', 'b') },
  facts: { length: { from: 1, to: 't' } },
  outputs: { w: tensor('T', 'b h s t') },
  attrs: { factor: 0.125 },
  body:
    ({ x, length }, { t, factor }) =>
    (b, h, s) => {
      const v = row(t, (c) => (c < length(b) ? factor * x(b, h, s, c) : -Infinity))
      const top = max(t, (c) => v(c))
      const e = row(t, (c) => exp(v(c) - top))
      const total = sum(t, (c) => e(c))
      return { w: row(t, (c) => e(c) / total) }
    },
})

export const pagedAttention = graph('paged_attention', {
  inputs: {
    q: tensor('T', 'b h s d'),
    keys: tensor('T', 'n p h d'),
    values: tensor('T', 'n p h d'),
    table: tensor('i32', 'b q'),
    length: tensor('i32', 'b'),
  },
  weights: {},
  typical: { b: 8, h: 16, s: 1, d: 64, n: 512, p: 16, q: 64 },
  build: (g, { q, keys, values, table, length }) => {
    const k = g.apply(gatherPages, { cache: keys, table }, {}, { t: 't' }).y
    const v = g.apply(gatherPages, { cache: values, table }, {}, { t: 't' }).y
    const scores = g.matmul('b h s d, b h t d -> b h s t', q, k)
    const weights = g.apply(weighRagged, { x: scores, length }).w
    const y = g.matmul('b h s t, b h t d -> b h s d', weights, v)
    return { nodes: { k, v, scores, weights, y }, outputs: { y } }
  },
})

export const int8Attention = graph('int8_attention', {
  inputs: {
    q: tensor('T', 'b h s d'),
    keys: tensor('i8', 'b h t d'),
    ks: tensor('T', 'b h t'),
    values: tensor('i8', 'b h t d'),
    vs: tensor('T', 'b h t'),
    length: tensor('i32', 'b'),
  },
  weights: {},
  typical: { b: 8, h: 16, s: 128, t: 1024, d: 64 },
  build: (g, { q, keys, ks, values, vs, length }) => {
    const k = g.apply(ofInt8, { x: keys, scale: ks }).y
    const v = g.apply(ofInt8, { x: values, scale: vs }).y
    const scores = g.matmul('b h s d, b h t d -> b h s t', q, k)
    const weights = g.apply(weighRagged, { x: scores, length }).w
    const y = g.matmul('b h s t, b h t d -> b h s d', weights, v)
    return { nodes: { k, v, scores, weights, y }, outputs: { y } }
  },
})

export const float8Attention = graph('float8_attention', {
  inputs: {
    q: tensor('T', 'b h s d'),
    keys: tensor('f8e4m3', 'b h t d'),
    ks: tensor('T', 'h e'),
    values: tensor('f8e4m3', 'b h t d'),
    vs: tensor('T', 'h e'),
    length: tensor('i32', 'b'),
  },
  weights: {},
  typical: { b: 8, h: 16, s: 128, t: 1024, d: 64, e: 2 },
  build: (g, { q, keys, ks, values, vs, length }) => {
    const k = g.apply(ofFloat8, { x: keys, scale: ks }).y
    const v = g.apply(ofFloat8, { x: values, scale: vs }).y
    const scores = g.matmul('b h s d, b h t d -> b h s t', q, k)
    const weights = g.apply(weighRagged, { x: scores, length }).w
    const y = g.matmul('b h s t, b h t d -> b h s d', weights, v)
    return { nodes: { k, v, scores, weights, y }, outputs: { y } }
  },
})
