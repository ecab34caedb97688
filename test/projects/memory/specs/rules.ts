/**
 * Sequence forms of rules whose tokens correct earlier ones, which need one step per token: for each element of the value, a row of the
 * state over the key is carried from token to token (the steps themselves are in steps.ts).
 */
import { exp, foldRow, layout, max, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Values of all heads are adjacent in memory, token after token. */
export const valuesByTime = layout('values_by_time', ['b', 'h', 'v', 't'], {
  offset: (at, of) => ((at.b * of.t + at.t) * of.h + at.h) * of.v + at.v,
})

// #region correctSequence
/** The gated delta rule over a sequence: moves the memory's result for a key towards the value, by the factor `rate`. */
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
// #endregion

/** RWKV-7's rule over a sequence: each element of the key decays by itself, its content for `removed` is taken out, and stored under `added`. */
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

/** Two rows carried together, each computed from the other at other indices, and a carried number. */
export const crossedRows = op('crossed_rows', {
  dims: ['m', 't', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), w: tensor('T', 'm t n'), rate: tensor('f32', 'm t') },
  outputs: { first: tensor('f32', 'm n'), second: tensor('T', 'm n'), y: tensor('f32', 'm t'), most: tensor('f32', 'm t') },
  facts: { rate: { from: 0, to: 1 } },
  body:
    ({ x, w, rate }, { t, n }) =>
    (m) => {
      const half = row(n, (c) => 0.5 * x(m, c))
      const all = foldRow(t, { s: half, r: row(n, (c) => x(m, n - 1 - c)), y: 0.25, most: 0 }, ({ s, r, y }, i) => {
        const most = max(n, (c) => s(n - 1 - c) + w(m, i, c))
        const mixed = row(n, (c) => 0.5 * s(n - 1 - c) + 0.25 * r(c) + rate(m, i) * w(m, i, c))
        const share = rate(m, i) > 0.5 ? 0.5 : 0.25
        const crossed = row(n, (c) => share * mixed(n - 1 - c) - 0.125 * s(c))
        const total = sum(n, (c) => 0.125 * mixed(c) * crossed(c))
        return { s: mixed, r: crossed, y: 0.5 * y + total, most }
      })
      return {
        first: row(n, (c) => all.s(c) + all.r(n - 1 - c)),
        second: row(n, (c) => all.r(c) + half(c)),
        y: row(t, (i) => all.y(i)),
        most: row(t, (i) => all.most(i)),
      }
    },
})
