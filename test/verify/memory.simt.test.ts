/**
 * Layers with a matrix per head as memory (linear attention with decay or gates, state spaces, delta rules), in a separate project: one token at a
 * time with the memory replaced in place, against the recurrence in plain JavaScript, token by token in doubles.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Device, openDevice, type Tensor, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { check } from '../../src/verify/testing.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { correctStep, exchangeStep, fadeStep, gateStep, selectStep } from '../projects/memory/specs/steps.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
let device: Device

beforeAll(async () => {
  root = await ownProject('memory')
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device[Symbol.asyncDispose]()
  await rm(root, { recursive: true, force: true })
})

type Float = 'f32' | 'f16' | 'bf16'
const [b, h, v, tokens] = [2, 2, 3, 5]
/** Positions of a memory: one, and those around a warp and a block. */
const sizes: readonly (readonly [Float, number])[] = [
  ['f32', 1],
  ['f32', 31],
  ['f32', 33],
  ['f32', 300],
  ['f16', 33],
  ['bf16', 31],
]

/** Numbers in [from, to) as a storage type represents them, different for each seed. */
function draw<D extends Float>(dtype: D, shape: readonly number[], seed: number, from: number, to: number) {
  const length = shape.reduce((x, y) => x * y, 1)
  const given = tensor(
    dtype,
    shape,
    Array.from({ length }, (_, i) => from + (to - from) * ((Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453) % 1) ** 2),
  )
  return { given, of: Array.from(toNumbers(given)) }
}
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

/** Effect of a token on the row of a memory for one element of the value: in plain numbers, positions of the key by `c`. */
type Rule = (
  s: readonly number[],
  i: { readonly head: number; readonly channel: number; readonly batch: number },
) => { s: number[]; y: number }

/** Every row of the memory after one token, and the value read. */
function walk(state: readonly number[], k: number, rule: Rule): { state: number[]; y: number[] } {
  const rows = Array.from({ length: b * h * v }, (_, r) => {
    const [head, batch] = [Math.floor(r / v), Math.floor(r / (v * h))]
    return rule(state.slice(r * k, (r + 1) * k), { head, channel: r, batch })
  })
  return { state: rows.flatMap(({ s }) => s), y: rows.map(({ y }) => y) }
}
const dot = (x: readonly number[], y: (c: number) => number): number => x.reduce((sum, each, c) => sum + each * y(c), 0)
const comparison = (found: readonly number[], exact: readonly number[], dtype: Float, length: number) =>
  compare(
    found,
    exact,
    tolerance({ dtype, class: 'matmul', length: length + tokens, scale: Math.max(1, ...exact.map(Math.abs)) }),
  )

/** The tensors of one token, and the memory after the rule. */
function token(dtype: Float, k: number, seed: number) {
  // Keys of about one in length, so that a correction takes away and does not amplify.
  const small = 1 / Math.sqrt(k)
  const key = draw(dtype, [b, h, k], 10 * seed, -small, small)
  const query = draw(dtype, [b, h, k], 10 * seed + 1, -1, 1)
  const value = draw(dtype, [b, h, v], 10 * seed + 2, -1, 1)
  const gate = draw(dtype, [b, h, k], 10 * seed + 3, 0.3, 1)
  const removed = draw(dtype, [b, h, k], 10 * seed + 4, -small, small)
  const rates = draw(dtype, [b, h, k], 10 * seed + 5, 0, 1)
  const fades = draw('f32', [b, h], 10 * seed + 6, 0.3, 1)
  const rate = draw('f32', [b, h], 10 * seed + 7, 0.1, 1)
  const fade = draw('f32', [h], 6, 0.3, 1)
  const decay = draw('f32', [h], 8, 0, 2)
  const skip = draw('f32', [h], 9, -1, 1)
  const write = draw(dtype, [b, k], 10 * seed + 8, -1, 1)
  const read = draw(dtype, [b, k], 10 * seed + 9, -1, 1)
  return { key, query, value, gate, removed, rates, fades, rate, fade, decay, skip, write, read }
}
type Token = ReturnType<typeof token>

const isRead = (s: number[], { query }: Token, k: number, head: number) => ({ s, y: dot(s, (c) => at(query.of, head * k + c)) })

/** The rules, as in their papers except for names. `isLate` is the mistake of reading a memory that is already decayed and written. */
const rules = {
  fade:
    (t: Token, k: number): Rule =>
    (s, { head, channel }) =>
      isRead(
        s.map((each, c) => at(t.fade.of, head % h) * each + at(t.value.of, channel) * at(t.key.of, head * k + c)),
        t,
        k,
        head,
      ),
  gate:
    (t: Token, k: number): Rule =>
    (s, { head, channel }) =>
      isRead(
        s.map((each, c) => at(t.gate.of, head * k + c) * each + at(t.value.of, channel) * at(t.key.of, head * k + c)),
        t,
        k,
        head,
      ),
  select:
    (t: Token, k: number): Rule =>
    (s, { head, channel, batch }) => {
      const [dt, x] = [at(t.rate.of, head), at(t.value.of, channel)]
      const next = s.map((each, c) => Math.exp(-at(t.decay.of, head % h) * dt) * each + dt * x * at(t.write.of, batch * k + c))
      return { s: next, y: dot(next, (c) => at(t.read.of, batch * k + c)) + at(t.skip.of, head % h) * x }
    },
  correct:
    (t: Token, k: number, isLate = false): Rule =>
    (s, { head, channel }) => {
      const [key, rate, x] = [(c: number) => at(t.key.of, head * k + c), at(t.rate.of, head), at(t.value.of, channel)]
      const faded = s.map((each) => at(t.fades.of, head) * each)
      const known = dot(isLate ? faded.map((each, c) => each + rate * x * key(c)) : faded, key)
      return isRead(
        faded.map((each, c) => each - rate * key(c) * known + rate * x * key(c)),
        t,
        k,
        head,
      )
    },
  exchange:
    (t: Token, k: number, isLate = false): Rule =>
    (s, { head, channel }) => {
      const of = (x: { readonly of: readonly number[] }) => (c: number) => at(x.of, head * k + c)
      const [gate, removed, rate, key] = [of(t.gate), of(t.removed), of(t.rates), of(t.key)]
      const faded = s.map((each, c) => gate(c) * each)
      const known = dot(isLate ? faded : s, removed)
      return isRead(
        faded.map((each, c) => each - known * removed(c) * rate(c) + at(t.value.of, channel) * key(c)),
        t,
        k,
        head,
      )
    },
}

type Called = (
  t: Token,
  state: Tensor<'f32'>,
) => Promise<{ readonly next: Parameters<typeof toNumbers>[0]; readonly y: Parameters<typeof toNumbers>[0] }>
const calls: Readonly<Record<keyof typeof rules, Called>> = {
  fade: ({ query, key, value, fade }, state) =>
    device.call(fadeStep, { state, query: query.given, key: key.given, value: value.given, fade: fade.given }),
  gate: ({ query, key, value, gate }, state) =>
    device.call(gateStep, { state, query: query.given, key: key.given, value: value.given, gate: gate.given }),
  select: ({ value, rate, decay, write, read, skip }, state) =>
    device.call(selectStep, {
      state,
      x: value.given,
      length: rate.given,
      rate: decay.given,
      write: write.given,
      read: read.given,
      skip: skip.given,
    }),
  correct: ({ query, key, value, fades, rate }, state) =>
    device.call(correctStep, {
      state,
      query: query.given,
      key: key.given,
      value: value.given,
      fade: fades.given,
      rate: rate.given,
    }),
  exchange: ({ query, key, value, gate, removed, rates }, state) =>
    device.call(exchangeStep, {
      state,
      query: query.given,
      key: key.given,
      value: value.given,
      gate: gate.given,
      removed: removed.given,
      rate: rates.given,
    }),
}

/** Tokens in sequence, on the device and by a rule: the first comparison that fails, or the last. */
async function decode(name: keyof typeof rules, dtype: Float, k: number, isLate = false) {
  let state = draw('f32', [b, h, v, k], 5, -1, 1)
  let exact: readonly number[] = state.of
  for (let n = 1; n <= tokens; n++) {
    const t = token(dtype, k, n)
    const found = await calls[name](t, state.given)
    const wanted = walk(exact, k, rules[name](t, k, isLate))
    const results = [
      comparison(Array.from(toNumbers(found.y)), wanted.y, dtype, k),
      comparison(Array.from(toNumbers(found.next)), wanted.state, 'f32', k),
    ]
    const failed = results.find(({ passed }) => !passed)
    if (failed !== undefined) return failed.summary
    const of = Array.from(toNumbers(found.next))
    state = { given: tensor('f32', [b, h, v, k], of), of }
    exact = wanted.state
  }
  return 'equal'
}

describe('a token at a time', () => {
  for (const name of ['fade', 'gate', 'select', 'correct', 'exchange'] as const)
    it(`${name}s a memory in place as the recurrence says`, async () => {
      for (const [dtype, k] of sizes) expect([dtype, k, await decode(name, dtype, k)]).toEqual([dtype, k, 'equal'])
    })
  it('differs from a memory that is read after it was decayed or written', async () => {
    for (const name of ['correct', 'exchange'] as const)
      for (const [dtype, k] of sizes.filter(([type]) => type === 'f32'))
        expect(await decode(name, dtype, k, true), `${name} ${k}`).not.toBe('equal')
  })
  it('equals its body, and no other body', async () => {
    expect(await check(correctStep, { root, device: 'simt', dtypes: ['f32'] })).toMatchObject({ failed: 0 })
    const still = { ...correctStep, body: () => () => ({ next: () => 0, y: 0 }) }
    expect((await check(still, { root, device: 'simt', dtypes: ['f32'] })).failed).toBeGreaterThan(0)
  })
})
