/**
 * Attention whose scores add two matmuls, one of a part without position and one of a rotated part whose keys all heads share: operands are joined along
 * the head, and one matmul takes both.
 */
import { exp, graph, max, op, plan, row, sum, tensor } from 'heddle'

const types = { T: ['f16'] } as const
const pairs = tensor('T', 'n g r z')
const part = tensor('T', 'n s g u')
const whole = tensor('T', 'n s g c')
const facts = { c: 'u+v' } as const
const dims = ['n', 's', 'g', 'u', 'v', 'c'] as const

export const joinOwn = op('join_own', {
  dims,
  types,
  facts,
  inputs: { a: part, b: tensor('T', 'n s g v') },
  outputs: { o: whole },
  body:
    ({ a, b }, { u }) =>
    (n, s, g, c) => ({ o: c < u ? a(n, s, g, c) : b(n, s, g, c - u) }),
})

export const joinShared = op('join_shared', {
  dims,
  types,
  facts,
  inputs: { a: part, b: tensor('T', 'n s v') },
  outputs: { o: whole },
  body:
    ({ a, b }, { u }) =>
    (n, s, g, c) => ({ o: c < u ? a(n, s, g, c) : b(n, s, c - u) }),
})

export const weigh = op('weigh', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: pairs },
  outputs: { o: pairs },
  body:
    ({ w }, { z }) =>
    (n, g, i) => {
      const top = max(z, (j) => w(n, g, i, j) * 0.25)
      const e = row(z, (j) => exp(w(n, g, i, j) * 0.25 - top))
      const total = sum(z, (j) => e(j))
      return { o: row(z, (j) => e(j) / total) }
    },
})

export const twoParts = graph('two_parts', {
  inputs: {
    queries: tensor('T', 'n i g u'),
    turnedQueries: tensor('T', 'n i g v'),
    keys: tensor('T', 'n j g u'),
    turnedKeys: tensor('T', 'n j v'),
    values: tensor('T', 'n j g d'),
  },
  weights: {},
  build: (g, { queries, turnedQueries, keys, turnedKeys, values }) => {
    const q = g.apply(joinOwn, { a: queries, b: turnedQueries }, {}, { c: 'c' }).o
    const k = g.apply(joinShared, { a: keys, b: turnedKeys }, {}, { c: 'c' }).o
    const raw = g.matmul('n i g c, n j g c -> n g i j', q, k)
    const o = g.apply(weigh, { w: raw }).o
    const y = g.matmul('n g i j, n j g d -> n i g d', o, values)
    return { nodes: { q, k, raw, o, y }, outputs: { y } }
  },
})

export const plans = [plan('one', twoParts, { groups: { attend_parts: ['q', 'k', 'raw', 'o', 'y'] } })]
