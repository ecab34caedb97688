/**
 * The same layers over a whole sequence, for rules in which no token corrects earlier ones: a read is a sum over the tokens so far, decayed by the
 * gates in between. The logarithms of the gates are summed along time first; a difference of two sums is never above zero.
 */
import { exp, foldRow, layout, minimum, op, row, scan, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Logarithms of gates up to each token, that token's included. */
export const fadeTotals = op('fade_totals', {
  dims: ['b', 'h', 't'],
  inputs: { log: tensor('f32', 'b h t') },
  outputs: { total: tensor('f32', 'b h t') },
  facts: { log: { from: -1, to: 0 } },
  body:
    ({ log }, { t }) =>
    (b, h) => {
      const total = scan(t, (s) => log(b, h, s))
      return { total: row(t, (s) => total(s)) }
    },
})

/** One decay per head and token: weight of each earlier token (`u`) for a token (`t`), `exp(total(t) - total(u)) (query(t) key(u))`. */
export const fadeWeights = op('fade_weights', {
  dims: ['b', 'h', 't', 'u', 'k'],
  types,
  inputs: {
    query: tensor('T', 'b h t k'),
    key: tensor('T', 'b h u k'),
    total: tensor('f32', 'b h t'),
  },
  outputs: { weight: tensor('f32', 'b h t u') },
  facts: { u: 't', total: { from: -4, to: 0 } },
  body:
    ({ query, key, total }, { k }) =>
    (b, h, now, s) => {
      const likeness = sum(k, (c) => query(b, h, now, c) * key(b, h, s, c))
      return { weight: s <= now ? exp(total(b, h, now) - total(b, h, 0 + s)) * likeness : 0 }
    },
})

/** Channels of all heads are adjacent in memory, with time as the last index. */
export const headsByTime = layout('heads_by_time', ['b', 'h', 'k', 't'], {
  offset: (at, of) => ((at.b * of.t + at.t) * of.h + at.h) * of.k + at.k,
})

/** The same totals for each element of a key, with coalesced reads. */
export const gateTotals = op('gate_totals', {
  dims: ['b', 'h', 'k', 't'],
  inputs: { log: tensor('f32', 'b h k t', headsByTime) },
  outputs: { total: tensor('f32', 'b h k t', headsByTime) },
  facts: { log: { from: -1, to: 0 } },
  body:
    ({ log }, { t }) =>
    (b, h, k) => {
      const all = foldRow(t, { total: 0 }, ({ total }, s) => ({ total: total + log(b, h, k, s) }))
      return { total: row(t, (s) => all.total(s)) }
    },
})

/** Each element of the key decays separately. */
export const gateWeights = op('gate_weights', {
  dims: ['b', 'h', 't', 'u', 'k'],
  types,
  inputs: {
    query: tensor('T', 'b h t k'),
    key: tensor('T', 'b h u k'),
    total: tensor('f32', 'b h k t', headsByTime),
  },
  outputs: { weight: tensor('f32', 'b h t u') },
  facts: { u: 't', total: { from: -4, to: 0 } },
  body:
    ({ query, key, total }, { k }) =>
    (b, h, now, s) => {
      const faded = (c: number): number => exp(minimum(total(b, h, c, now) - total(b, h, c, 0 + s), 0))
      const likeness = sum(k, (c) => faded(c) * query(b, h, now, c) * key(b, h, s, c))
      return { weight: s <= now ? likeness : 0 }
    },
})

/** Contribution of the tokens so far, read by the weights of either. */
export const weightedValues = op('weighted_values', {
  dims: ['b', 'h', 't', 'u', 'v'],
  types,
  inputs: { weight: tensor('f32', 'b h t u'), value: tensor('T', 'b h u v') },
  outputs: { y: tensor('T', 'b h t v') },
  facts: { u: 't' },
  body:
    ({ weight, value }, { u }) =>
    (b, h, t, e) => ({ y: sum(u, (s) => weight(b, h, t, s) * value(b, h, s, e)) }),
})
