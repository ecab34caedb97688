/**
 * Layers whose memory is a matrix for each head, one token at a time: a row of it for each element of the value, which a token fades,
 * corrects and adds to, and then reads. The memory is replaced in place. Each row is read whole before any of it is replaced.
 */
import { exp, op, row, sum, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** A number a head fades its memory (linear attention with decay, retention); 1 forgets nothing. */
export const fadeStep = op('fade_step', {
  dims: ['b', 'h', 'v', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    query: tensor('T', 'b h k'),
    key: tensor('T', 'b h k'),
    value: tensor('T', 'b h v'),
    fade: tensor('f32', 'h'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v') },
  updates: { next: 'state' },
  facts: { fade: { from: 0, to: 1 } },
  body:
    ({ state, query, key, value, fade }, { k }) =>
    (b, h, v) => {
      const s = row(k, (c) => fade(h) * state(b, h, v, c) + value(b, h, v) * key(b, h, c))
      return { next: row(k, (c) => s(c)), y: sum(k, (c) => s(c) * query(b, h, c)) }
    },
})

/** Each element of the key decays by its own gate (gated linear attention). */
export const gateStep = op('gate_step', {
  dims: ['b', 'h', 'v', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    query: tensor('T', 'b h k'),
    key: tensor('T', 'b h k'),
    value: tensor('T', 'b h v'),
    gate: tensor('T', 'b h k'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v') },
  updates: { next: 'state' },
  facts: { gate: { from: 0, to: 1 } },
  body:
    ({ state, query, key, value, gate }, { k }) =>
    (b, h, v) => {
      const s = row(k, (c) => gate(b, h, c) * state(b, h, v, c) + value(b, h, v) * key(b, h, c))
      return { next: row(k, (c) => s(c)), y: sum(k, (c) => s(c) * query(b, h, c)) }
    },
})

/**
 * A selective state space (SSD): the step size sets decay and weight, heads share input and output projections, and the input has a skip
 * connection.
 */
export const selectStep = op('select_step', {
  dims: ['b', 'h', 'v', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    x: tensor('T', 'b h v'),
    length: tensor('f32', 'b h'),
    rate: tensor('f32', 'h'),
    write: tensor('T', 'b k'),
    read: tensor('T', 'b k'),
    skip: tensor('f32', 'h'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v') },
  updates: { next: 'state' },
  facts: { length: { from: 0, to: 1 }, rate: { from: 0, to: 4 } },
  body:
    ({ state, x, length, rate, write, read, skip }, { k }) =>
    (b, h, v) => {
      const fade = exp(-rate(h) * length(b, h))
      const s = row(k, (c) => fade * state(b, h, v, c) + length(b, h) * x(b, h, v) * write(b, c))
      return { next: row(k, (c) => s(c)), y: sum(k, (c) => s(c) * read(b, c)) + skip(h) * x(b, h, v) }
    },
})

// #region correctStep
/** Moves the memory's result for the key towards the value, by the factor `rate` (the gated delta rule; the delta rule if `fade` is 1). */
export const correctStep = op('correct_step', {
  dims: ['b', 'h', 'v', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    query: tensor('T', 'b h k'),
    key: tensor('T', 'b h k'),
    value: tensor('T', 'b h v'),
    fade: tensor('f32', 'b h'),
    rate: tensor('f32', 'b h'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v') },
  updates: { next: 'state' },
  facts: { fade: { from: 0, to: 1 }, rate: { from: 0, to: 1 } },
  body:
    ({ state, query, key, value, fade, rate }, { k }) =>
    (b, h, v) => {
      const known = fade(b, h) * sum(k, (c) => state(b, h, v, c) * key(b, h, c))
      const error = rate(b, h) * (value(b, h, v) - known)
      const s = row(k, (c) => fade(b, h) * state(b, h, v, c) + error * key(b, h, c))
      return { next: row(k, (c) => s(c)), y: sum(k, (c) => s(c) * query(b, h, c)) }
    },
})
// #endregion

/** Keys for removal and for insertion are separate, and each element decays by itself (RWKV-7). */
export const exchangeStep = op('exchange_step', {
  dims: ['b', 'h', 'v', 'k'],
  types,
  inputs: {
    state: tensor('f32', 'b h v k'),
    query: tensor('T', 'b h k'),
    key: tensor('T', 'b h k'),
    value: tensor('T', 'b h v'),
    gate: tensor('T', 'b h k'),
    removed: tensor('T', 'b h k'),
    rate: tensor('T', 'b h k'),
  },
  outputs: { next: tensor('f32', 'b h v k'), y: tensor('T', 'b h v') },
  updates: { next: 'state' },
  facts: { gate: { from: 0, to: 1 }, rate: { from: 0, to: 1 } },
  body:
    ({ state, query, key, value, gate, removed, rate }, { k }) =>
    (b, h, v) => {
      const known = sum(k, (c) => state(b, h, v, c) * removed(b, h, c))
      const s = row(
        k,
        (c) => gate(b, h, c) * state(b, h, v, c) - known * removed(b, h, c) * rate(b, h, c) + value(b, h, v) * key(b, h, c),
      )
      return { next: row(k, (c) => s(c)), y: sum(k, (c) => s(c) * query(b, h, c)) }
    },
})
