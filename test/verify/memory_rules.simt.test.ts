/**
 * Rules whose tokens correct earlier ones, over whole sequences in one kernel that carries a row of the memory from token to token: against plain
 * JavaScript in doubles, against the rule one token at a time, and a sequence in two parts against all of it.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { correctSequence, rwkvSequence } from '../projects/memory/specs/rules.js'
import { correctStep } from '../projects/memory/specs/steps.js'
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
const [b, h, v] = [2, 3, 3]
/** Storage type, tokens, positions of a key: one, those around a warp, and more than it has lanes several times. */
const sizes: readonly (readonly [Float, number, number])[] = [
  ['f32', 1, 1],
  ['f32', 7, 33],
  ['f32', 8, 31],
  ['f32', 3, 300],
  ['f16', 7, 33],
  ['bf16', 6, 5],
]
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

/** Numbers in [from, to) as a storage type represents them. */
function draw<D extends Float>(dtype: D, shape: readonly number[], seed: number, from: number, to: number) {
  const length = shape.reduce((x, y) => x * y, 1)
  const waves = Array.from({ length }, (_, i) => from + (to - from) * (0.5 + 0.5 * Math.sin(i * 1.7 + seed * i + seed)))
  const given = tensor(dtype, shape, waves)
  return { given, shape, dtype, of: Array.from(toNumbers(given)) }
}
type Drawn<D extends Float = Float> = ReturnType<typeof draw<D>>

function drawAll(dtype: Float, t: number, k: number) {
  // Keys of about one in length, so that a correction takes away and does not amplify.
  const small = 1 / Math.sqrt(k)
  return {
    query: draw(dtype, [b, t, h, k], 1, -1, 1),
    key: draw(dtype, [b, t, h, k], 2, -small, small),
    value: draw(dtype, [b, t, h, v], 3, -1, 1),
    fade: draw('f32', [b, t, h], 4, 0.3, 1),
    rate: draw('f32', [b, t, h], 5, 0.1, 1),
    log: draw('f32', [b, t, h, k], 6, -1, 0),
    removed: draw(dtype, [b, t, h, k], 7, -small, small),
    added: draw(dtype, [b, t, h, k], 8, -small, small),
  }
}
type All = ReturnType<typeof drawAll>

/** Tokens from..to of everything. */
function part(all: All, from: number, to: number): All {
  const cut = <D extends Float>({ shape, dtype, of }: Drawn<D>): Drawn<D> => {
    const [batches = 0, t = 0, ...inner] = shape
    const size = inner.reduce((x, y) => x * y, 1)
    const kept = Array.from({ length: batches }, (_, i) => of.slice((i * t + from) * size, (i * t + to) * size)).flat()
    return { given: tensor(dtype, [batches, to - from, ...inner], kept), shape: [batches, to - from, ...inner], dtype, of: kept }
  }
  const { query, key, value, fade, rate, log, removed, added } = all
  return {
    query: cut(query),
    key: cut(key),
    value: cut(value),
    fade: cut(fade),
    rate: cut(rate),
    log: cut(log),
    removed: cut(removed),
    added: cut(added),
  }
}

/** Effect of a token on a row of the memory. `isLate` is the mistake of reading a memory that already includes the token. */
type Rule = (s: readonly number[], all: All, where: { head: number; channel: number; k: number }, isLate: boolean) => number[]
const dot = (x: readonly number[], y: (c: number) => number): number => x.reduce((sum, each, c) => sum + each * y(c), 0)

const rules: Readonly<Record<'correct' | 'rwkv', Rule>> = {
  correct(s, { key, value, fade, rate }, { head, channel, k }, isLate) {
    const of = (c: number): number => at(key.of, head * k + c)
    const [gate, much, x] = [at(fade.of, head), at(rate.of, head), at(value.of, head * v + channel)]
    const faded = s.map((each) => gate * each)
    const known = dot(isLate ? faded.map((each, c) => each + much * x * of(c)) : faded, of)
    return faded.map((each, c) => each + much * (x - known) * of(c))
  },
  rwkv(s, { key, value, log, removed, added }, { head, channel, k }, isLate) {
    const of = (x: Drawn, c: number): number => at(x.of, head * k + c)
    const faded = s.map((each, c) => each * Math.exp(of(log, c)))
    const known = dot(isLate ? faded : s, (c) => of(removed, c))
    return faded.map((each, c) => each + known * of(added, c) + at(value.of, head * v + channel) * of(key, c))
  },
}

/** The recurrence in doubles: the value read at each token, and the memory after the last. */
function recurrence(name: keyof typeof rules, state: readonly number[], all: All, t: number, k: number, isLate = false) {
  const y = new Array<number>(b * t * h * v).fill(0)
  const next: number[] = []
  for (let batch = 0; batch < b; batch++)
    for (let own = 0; own < h; own++)
      for (let channel = 0; channel < v; channel++) {
        const first = ((batch * h + own) * v + channel) * k
        let s: readonly number[] = state.slice(first, first + k)
        for (let now = 0; now < t; now++) {
          const head = (batch * t + now) * h + own
          s = rules[name](s, all, { head, channel, k }, isLate)
          y[head * v + channel] = dot(s, (c) => at(all.query.of, head * k + c))
        }
        next.push(...s)
      }
  return { next, y }
}

async function onDevice(name: keyof typeof rules, given: readonly number[], all: All, k: number) {
  const state = tensor('f32', [b, h, v, k], given)
  const { query, key, value, fade, rate, log, removed, added } = all
  const { next, y } =
    name === 'correct'
      ? await device.call(correctSequence, {
          state,
          query: query.given,
          key: key.given,
          value: value.given,
          fade: fade.given,
          rate: rate.given,
        })
      : await device.call(rwkvSequence, {
          state,
          receptance: query.given,
          log: log.given,
          key: key.given,
          value: value.given,
          removed: removed.given,
          added: added.given,
        })
  return { next: Array.from(toNumbers(next)), y: Array.from(toNumbers(y)) }
}

const comparison = (found: readonly number[], exact: readonly number[], dtype: Float, length: number) =>
  compare(found, exact, tolerance({ dtype, class: 'matmul', length, scale: Math.max(1, ...exact.map(Math.abs)) }))

/** `y` in the order of its dimensions, (b h v t), from the device's: heads and channels before tokens. */
const byTokens = (y: readonly number[], t: number): number[] =>
  Array.from({ length: b * t * h * v }, (_, i) => {
    const [channel, own] = [i % v, Math.floor(i / v) % h]
    const [now, batch] = [Math.floor(i / (v * h)) % t, Math.floor(i / (v * h * t))]
    return at(y, ((batch * h + own) * v + channel) * t + now)
  })

async function check(name: keyof typeof rules, [dtype, t, k]: (typeof sizes)[number], isLate = false) {
  const all = drawAll(dtype, t, k)
  const state = draw('f32', [b, h, v, k], 9, -1, 1)
  const found = await onDevice(name, state.of, all, k)
  const exact = recurrence(name, state.of, all, t, k, isLate)
  const results = [comparison(found.next, exact.next, 'f32', k + t), comparison(byTokens(found.y, t), exact.y, dtype, k + t)]
  return results.find(({ passed }) => !passed) ?? results[0]
}

describe('a rule over a sequence', () => {
  for (const name of ['correct', 'rwkv'] as const) {
    it(`${name}: equals the recurrence, in memory and in reads`, async () => {
      for (const each of sizes) {
        const result = await check(name, each)
        expect(result?.passed, `${each}: ${result?.summary}`).toBe(true)
      }
    })

    it(`${name}: differs from the recurrence that reads a memory with the token already in it`, async () => {
      for (const each of [sizes[1], sizes[4]]) if (each !== undefined) expect((await check(name, each, true))?.passed).toBe(false)
    })

    it(`${name}: in two parts leaves the bits of all of it at once`, async () => {
      const [t, k] = [9, 33]
      const all = drawAll('f32', t, k)
      const { of } = draw('f32', [b, h, v, k], 9, -1, 1)
      const whole = await onDevice(name, of, all, k)
      const first = await onDevice(name, of, part(all, 0, 5), k)
      const second = await onDevice(name, first.next, part(all, 5, t), k)
      expect(second.next).toEqual(whole.next)
      expect(first.next).not.toEqual(whole.next)
      const rows = Array.from({ length: b * h * v }, (_, r) => [
        ...first.y.slice(r * 5, r * 5 + 5),
        ...second.y.slice(r * 4, r * 4 + 4),
      ])
      expect(rows.flat()).toEqual(whole.y)
    })
  }

  it('is the rule a token at a time', async () => {
    const [t, k] = [6, 33]
    const all = drawAll('f32', t, k)
    const { of } = draw('f32', [b, h, v, k], 9, -1, 1)
    const whole = await onDevice('correct', of, all, k)
    let state: readonly number[] = of
    for (let now = 0; now < t; now++) {
      const { query, key, value, fade, rate } = part(all, now, now + 1)
      const step = await device.call(correctStep, {
        state: tensor('f32', [b, h, v, k], state),
        query: tensor('f32', [b, h, k], query.of),
        key: tensor('f32', [b, h, k], key.of),
        value: tensor('f32', [b, h, v], value.of),
        fade: tensor('f32', [b, h], fade.of),
        rate: tensor('f32', [b, h], rate.of),
      })
      const read = whole.y.filter((_, i) => i % t === now)
      const result = comparison(Array.from(toNumbers(step.y)), read, 'f32', k + t)
      expect(result.passed, result.summary).toBe(true)
      state = Array.from(toNumbers(step.next))
    }
    expect(comparison(state, whole.next, 'f32', k + t).passed).toBe(true)
    expect(comparison(of, whole.next, 'f32', k + t).passed).toBe(false)
  })
})
