/** Thresholds and random numbers on the simt device: every team against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openHost, type Subject } from './host.js'

const { kernels } = read(`import { op, tensor, threshold, uniform } from 'heddle'
export const cut = op('cut', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { keys: tensor('T', 'm n'), weights: tensor('f32', 'm n'), targets: tensor('f32', 'm') },
  outputs: { first: tensor('f32', 'm'), second: tensor('f32', 'm') },
  body:
    ({ keys, weights, targets }, { n }) =>
    (m) => {
      const first = threshold(n, targets(m), (c) => keys(m, c), (c) => weights(m, c))
      const second = threshold(n, targets(m) * 0.5, (c) => keys(m, c), (c) => (keys(m, c) >= first ? weights(m, c) : 0))
      return { first, second }
    },
})
export const draw = op('draw', {
  dims: ['m', 'n'],
  inputs: { low: tensor('i32', 'm n'), high: tensor('i32', 'm n'), step: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ low, high, step }) =>
    (m, c) => ({ y: uniform(low(m, c), high(m, c), step(m)) }),
})
`)

const kernelNamed = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

/** A number in (0, 1) for an index. */
function noise(i: number): number {
  const mixed = Math.imul(i ^ (i >>> 15), 0x2c1b3c6d)
  return ((Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39) >>> 9) + 0.5) / 2 ** 23
}

type Draw = (i: number, dims: Readonly<Record<string, number>>) => number

/** Contents of rows: keys like those of logits, and keys that are hard for a search by ranges. */
const keysOf: Readonly<Record<string, Draw>> = {
  'spread keys': (i) => 6 * Math.sqrt(-2 * Math.log(noise(i))) * Math.cos(2 * Math.PI * noise(i + 1_000_003)),
  'few distinct keys': (i) => Math.floor(noise(i) * 4) - 2,
  'equal keys': () => 1.5,
  'masked keys': (i) => (noise(i) < 0.9 ? Number.NEGATIVE_INFINITY : noise(i + 17)),
  'keys at -Infinity alone': () => Number.NEGATIVE_INFINITY,
  'keys of every magnitude': (i) => (noise(i) < 0.5 ? -1 : 1) * 2 ** (Math.floor(noise(i + 5) * 30) - 20),
  'infinite keys': (i) => [1, Number.POSITIVE_INFINITY, -2, 60_000, Number.NEGATIVE_INFINITY, 0, -0][i % 7] ?? 0,
}

/** Weights are multiples of a power of two, so that every order of summation gives one sum. */
const weights: Draw = (i) => Math.floor(noise(i + 99) * 5) / 4

/** Both sides of each team's longest row; the last is several rounds of the widest. */
const lengths = [1, 2, 16, 17, 33, 128, 129, 256, 257, 1000, 5001]

const subject = (keys: Draw, share: number): Subject => ({
  kernel: kernelNamed('cut'),
  class: 'exact',
  inputs: { keys, weights, targets: (i, { n = 1 }) => [Math.floor(share * n * 2) / 4, 0, -1, 1e9][i % 4] ?? 0 },
})

let host: Host

beforeAll(async () => {
  host = await openHost([subject(weights, 1), { kernel: kernelNamed('draw'), class: 'exact' }])
})
afterAll(() => host?.close())

describe('thresholds on simt equal their IR', () => {
  it.each(Object.entries(keysOf))('%s', async (_, keys) => {
    const complaints: string[] = []
    for (const key of ['cut__f32', 'cut__f16']) {
      for (const n of lengths) {
        for (const share of [0.02, 0.6]) complaints.push(await check(host, subject(keys, share), host.entry(key), 5, n))
      }
    }
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('find one key among a quarter of a million', async () => {
    const spread = keysOf['spread keys'] ?? weights
    expect(await check(host, subject(spread, 0.3), host.entry('cut__f32'), 1, 262_144)).toBe('')
  })

  it('fall back to the search for keys that are too close together for one range', async () => {
    const close: Draw = (i) => (i % 97 === 0 ? -1000 * noise(i) : 1 + Math.floor(noise(i) * 2000) * 2 ** -20)
    expect(await check(host, subject(close, 0.5), host.entry('cut__f32'), 3, 9001)).toBe('')
    const tiny: Draw = (i) => Math.floor(noise(i) * 3000) * 2 ** -149
    expect(await check(host, subject(tiny, 0.5), host.entry('cut__f32'), 3, 9001)).toBe('')
    const huge: Draw = (i) => (noise(i) - 0.5) * 6.7e38
    expect(await check(host, subject(huge, 0.5), host.entry('cut__f32'), 3, 9001)).toBe('')
  })

  it('tell a wrong threshold from a right one', async () => {
    const cut = kernelNamed('cut')
    const body = cut.body.map((s) =>
      s.kind === 'team' ? { ...s, elements: { ...s.elements, weight: { kind: 'const', type: 'f32', value: 1 } as const } } : s,
    )
    const wrong = { ...subject(keysOf['spread keys'] ?? weights, 0.5), kernel: { ...cut, body } }
    expect(await check(host, wrong, host.entry('cut__f32'), 5, 100)).toContain('first at 5 x 100')
  })
})

describe('uniform on simt', () => {
  it('draws the bits of its meaning', async () => {
    const word: Draw = (i) => Math.trunc((noise(i) - 0.5) * 2 ** 32)
    const inputs = { low: word, high: (i: number) => word(i + 7, {}), step: (i: number) => [0, 1, 2 ** 31 - 1, -1][i % 4] ?? 0 }
    expect(await check(host, { kernel: kernelNamed('draw'), class: 'exact', inputs }, host.entry('draw'), 4, 1000)).toBe('')
  })

  it('begins with the first word that Random123 publishes', async () => {
    const { outputs } = await launch(host, kernelNamed('draw'), host.entry('draw'), { m: 1, n: 1 }, () => () => 0)
    expect(outputs[0]?.stored[0]).toBe(((0x6627e8d5 >>> 9) + 0.5) / 2 ** 23)
  })
})
