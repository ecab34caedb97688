/**
 * Memories with decay or gates over whole sequences, as weights of the tokens so far: against the recurrence in plain JavaScript, which carries the
 * memory from token to token in doubles. A selective state space is the same with its step sizes folded into decays and values.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { fadeTotals, fadeWeights, gateTotals, gateWeights, weightedValues } from '../projects/memory/specs/sequences.js'
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
const [b, h, v] = [2, 2, 3]
/** Storage type, tokens, positions of a key. */
const sizes: readonly (readonly [Float, number, number])[] = [
  ['f32', 1, 1],
  ['f32', 7, 33],
  ['f32', 33, 31],
  ['f32', 9, 300],
  ['f16', 7, 33],
  ['bf16', 31, 5],
]
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

function draw<D extends Float>(dtype: D, shape: readonly number[], seed: number, from: number, to: number) {
  const length = shape.reduce((x, y) => x * y, 1)
  const waves = Array.from({ length }, (_, i) => from + (to - from) * (0.5 + 0.5 * Math.sin(i * 1.7 + seed)))
  const given = tensor(dtype, shape, waves)
  return { given, of: Array.from(toNumbers(given)) }
}

/** Result of the recurrence at each token; `isBefore` is the mistake of reading the memory before the token's write. */
function recurrence(
  [t, k]: readonly [number, number],
  fade: (head: number, c: number, now: number) => number,
  { query, key, value }: Readonly<Record<'query' | 'key' | 'value', { readonly of: readonly number[] }>>,
  isBefore = false,
): number[] {
  const y = new Array<number>(b * h * t * v).fill(0)
  for (let head = 0; head < b * h; head++)
    for (let e = 0; e < v; e++) {
      let s = new Array<number>(k).fill(0)
      for (let now = 0; now < t; now++) {
        const of = (x: readonly number[], c: number): number => at(x, (head * t + now) * k + c)
        const before = s.map((each, c) => fade(head, c, now) * each)
        s = before.map((each, c) => each + at(value.of, (head * t + now) * v + e) * of(key.of, c))
        y[(head * t + now) * v + e] = (isBefore ? before : s).reduce((sum, each, c) => sum + each * of(query.of, c), 0)
      }
    }
  return y
}

async function run(name: 'fade' | 'gate', [dtype, t, k]: (typeof sizes)[number], isBefore = false) {
  const query = draw(dtype, [b, h, t, k], 1, -1, 1)
  const key = draw(dtype, [b, h, t, k], 2, -0.7, 1)
  const value = draw(dtype, [b, h, t, v], 3, -0.5, 1)
  const log = draw('f32', name === 'fade' ? [b, h, t] : [b, h, k, t], 4, -0.9, 0)
  const logAt = (head: number, c: number, now: number): number =>
    at(log.of, name === 'fade' ? head * t + now : (head * k + c) * t + now)
  const [q, u] = [query.given, key.given]
  const { weight } =
    name === 'fade'
      ? await device.call(fadeWeights, { query: q, key: u, total: (await device.call(fadeTotals, { log: log.given })).total })
      : await device.call(gateWeights, { query: q, key: u, total: (await device.call(gateTotals, { log: log.given })).total })
  const { y } = await device.call(weightedValues, { weight, value: value.given })
  const exact = recurrence([t, k], (...of) => Math.exp(logAt(...of)), { query, key, value }, isBefore)
  const scale = Math.max(1, ...exact.map(Math.abs))
  return compare(Array.from(toNumbers(y)), exact, tolerance({ dtype, class: 'matmul', length: k + t, scale }))
}

describe('a whole sequence', () => {
  for (const name of ['fade', 'gate'] as const)
    it(`by ${name}s equals the reads of the recurrence`, async () => {
      for (const each of sizes) {
        const { passed, summary } = await run(name, each)
        expect(passed, `${each}: ${summary}`).toBe(true)
      }
    })
  it('differs from a memory read before it is written', async () => {
    for (const name of ['fade', 'gate'] as const)
      for (const each of sizes) expect((await run(name, each, true)).passed, `${name} ${each}`).toBe(false)
  })
})
