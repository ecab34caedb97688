/**
 * The sequence forms of rules whose tokens correct what others left, which need a step for each token: a row of the state over the key, for
 * each element of the value, is carried from token to token (the steps themselves are in steps.ts).
 */
import { exp, foldRow, layout, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Values of heads beside each other in memory, token after token. */
export const valuesByTime = layout('values_by_time', ['b', 'h', 'v', 't'], {
  offset: (at, of) => ((at.b * of.t + at.t) * of.h + at.h) * of.v + at.v,
})

/** The gated delta rule over a sequence: what the memory gives for a key is replaced by the value, by as much as `rate` says. */
export const correctSequence = op('correct_sequence', {
  dims: ['b', 'h', 'v', 't', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    query: tensor('T', 'b t h k'),
    key: tensor('T', 'b t h k'),
    value: tensor('T', 'b t h v'),
    fade: tensor('f32', 'b t h'),
    rate: tensor('f32', 'b t h'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v t', valuesByTime) },
  updates: { next: 'state' },
  facts: { key: { from: -0.5, to: 0.5 }, fade: { from: 0, to: 1 }, rate: { from: 0, to: 1 } },
  body:
    ({ state, query, key, value, fade, rate }, { t, k }) =>
    (b, h, v) => {
      const all = foldRow(t, { s: row(k, (c) => state(b, h, v, c)), y: 0 }, ({ s }, i) => {
        const known = fade(b, i, h) * sum(k, (c) => s(c) * key(b, i, h, c))
        const error = rate(b, i, h) * (value(b, i, h, v) - known)
        const next = row(k, (c) => fade(b, i, h) * s(c) + error * key(b, i, h, c))
        return { s: next, y: sum(k, (c) => next(c) * query(b, i, h, c)) }
      })
      return { next: row(k, (c) => all.s(c)), y: row(t, (i) => all.y(i)) }
    },
})

/** RWKV-7's rule over a sequence: each element of the key fades by itself, what it gives for `removed` is taken out, and put in `added`. */
export const rwkvSequence = op('rwkv_sequence', {
  dims: ['b', 'h', 'v', 't', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    receptance: tensor('T', 'b t h k'),
    log: tensor('f32', 'b t h k'),
    key: tensor('T', 'b t h k'),
    value: tensor('T', 'b t h v'),
    removed: tensor('T', 'b t h k'),
    added: tensor('T', 'b t h k'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v t', valuesByTime) },
  updates: { next: 'state' },
  facts: { log: { from: -1, to: 0 }, removed: { from: -0.25, to: 0.25 }, added: { from: -0.25, to: 0.25 } },
  body:
    ({ state, receptance, log, key, value, removed, added }, { t, k }) =>
    (b, h, v) => {
      const all = foldRow(t, { s: row(k, (c) => state(b, h, v, c)), y: 0 }, ({ s }, i) => {
        const known = sum(k, (c) => s(c) * removed(b, i, h, c))
        const next = row(k, (c) => s(c) * exp(log(b, i, h, c)) + known * added(b, i, h, c) + value(b, i, h, v) * key(b, i, h, c))
        return { s: next, y: sum(k, (c) => next(c) * receptance(b, i, h, c)) }
      })
      return { next: row(k, (c) => all.s(c)), y: row(t, (i) => all.y(i)) }
    },
})
