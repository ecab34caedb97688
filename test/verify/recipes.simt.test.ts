/**
 * Kernels of kinds that authors write first, in a project of its own: hashes, optimisers, norms and losses with gradients, gates, quantisers,
 * sampling and sequences. Each against its body at many sizes, and those whose body could be wrong itself against plain JavaScript.
 */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { check } from '../../src/verify/testing.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { murmur, noise } from '../projects/recipes/specs/hashes.js'
import { classCounts, cumulativeMax, segmentSort, spring, topP } from '../projects/recipes/specs/inference.js'
import { smoothedLoss } from '../projects/recipes/specs/training.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
let device: Device

beforeAll(async () => {
  root = await ownProject('recipes')
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device[Symbol.asyncDispose]()
  await rm(root, { recursive: true, force: true })
})

const wave = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7) * 3)
const numbers = (value: Parameters<typeof toNumbers>[0]): number[] => Array.from(toNumbers(value))
const close = (found: readonly number[], exact: readonly number[], length: number) =>
  compare(found, exact, tolerance({ dtype: 'f32', class: 'reduction', length, scale: 10 }))

describe('recipes', () => {
  it('compute what their bodies say', async () => {
    const { code, out } = await heddleIn(root, 'check', '--device', 'simt', '--dtype', 'f32', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    expect(report.passed).toBeGreaterThan(4000)
  })
  it('differ from bodies that say something else', async () => {
    const still = { ...murmur, body: () => (_c: number) => ({ hash: 0 }) }
    expect((await check(still, { root, device: 'simt', dtypes: ['f32'] })).failed).toBeGreaterThan(20)
  })
})

describe('hashes', () => {
  /** MurmurHash3 of one word, after its author's text. */
  const plain = (key: number, seed: number): number => {
    const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by))
    let h = seed ^ Math.imul(rotate(Math.imul(key, 0xcc9e2d51), 15), 0x1b873593)
    h = ((Math.imul(rotate(h, 13), 5) + 0xe6546b64) | 0) ^ 4
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
    return h ^ (h >>> 16)
  }
  it('wrap as 32 bits do, whichever way their sign goes', async () => {
    const keys = Int32Array.from({ length: 1001 }, (_, i) => Math.imul(i - 500, 0x3779b97f))
    const { hash } = await device.call(murmur, { key: tensor('i32', [1001], keys) }, { attrs: { seed: 42 } })
    expect(numbers(hash)).toEqual(Array.from(keys, (key) => plain(key, 42)))
    // Of the empty word, as published for seeds 0 and 1.
    expect([plain(0, 0), plain(0, 1)].map((value) => value >>> 0)).toEqual([0x2362f9de, 0x78ed212d])
  })
  it('give numbers of [0, 1) that lie evenly', async () => {
    const { y } = await device.call(
      noise,
      { state: tensor('i32', [1], Int32Array.of(-7)) },
      {
        dims: { n: 4096 },
      },
    )
    const all = numbers(y)
    expect(all.every((value) => value >= 0 && value < 1)).toBe(true)
    expect(Math.abs(all.reduce((a, b) => a + b, 0) / all.length - 0.5)).toBeLessThan(0.02)
  })
})

describe('sequences', () => {
  const [m, n] = [3, 131]
  const x = wave(m * n)
  const rows = (make: (row: readonly number[]) => readonly number[]): number[] =>
    Array.from({ length: m }, (_, r) => make(Array.from(x.slice(r * n, (r + 1) * n)))).flat()

  it('keep the largest so far', async () => {
    const { y } = await device.call(cumulativeMax, { x: tensor('f32', [m, n], x) })
    expect(numbers(y)).toEqual(rows((row) => row.map((_, c) => Math.max(...row.slice(0, c + 1)))))
  })
  it('carry two states that read each other', async () => {
    const { place } = await device.call(spring, { force: tensor('f32', [m, n], x) })
    const exact = rows((row) => {
      let [at, speed] = [0, 0]
      return row.map((force) => {
        speed = speed + force - 0.3 * at - 0.1 * speed
        at += speed
        return at
      })
    })
    expect(close(numbers(place), exact, n)).toMatchObject({ passed: true })
    expect(close(numbers(place), exact.toReversed(), n)).toMatchObject({ passed: false })
  })
  it('are sorted within their segments', async () => {
    const segment = Int32Array.from({ length: m * n }, (_, i) => i % 4)
    const { y } = await device.call(segmentSort, { x: tensor('f32', [m, n], x), segment: tensor('i32', [m, n], segment) })
    const exact = Array.from({ length: m }, (_, r) =>
      [0, 1, 2, 3].flatMap((of) =>
        Array.from({ length: n }, (_, c) => r * n + c)
          .filter((i) => segment[i] === of)
          .map((i) => x[i] ?? Number.NaN)
          .sort((a, b) => a - b),
      ),
    ).flat()
    expect(numbers(y)).toEqual(exact)
  })
  it('are counted by class', async () => {
    const label = Int32Array.from({ length: m * n }, (_, i) => (i * i) % 7)
    const { count } = await device.call(classCounts, { label: tensor('i32', [m, n], label) }, { dims: { k: 7 } })
    const exact = Array.from({ length: m }, (_, r) =>
      Array.from({ length: 7 }, (_, k) => label.slice(r * n, (r + 1) * n).filter((each) => each === k).length),
    )
    expect(numbers(count)).toEqual(exact.flat())
  })
  it('keep as few tokens as reach a mass', async () => {
    const p = Float32Array.of(0.05, 0.5, 0.125, 0.25, 0.075)
    const { kept } = await device.call(topP, { p: tensor('f32', [1, 5], p) }, { attrs: { mass: 0.85 } })
    expect(numbers(kept)).toEqual([0, 0.5, 0.125, 0.25, 0])
  })
})

describe('a loss with smoothed labels', () => {
  it('has the gradient of its differences', async () => {
    const [n, label] = [9, 4]
    const logits = wave(n)
    const loss = (values: readonly number[]): number => {
      const lse = Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0))
      return values.reduce((sum, value, c) => sum - (0.1 / n + (c === label ? 0.9 : 0)) * (value - lse), 0)
    }
    const found = await device.call(smoothedLoss, {
      logits: tensor('f32', [1, n], logits),
      label: tensor('i32', [1], Int32Array.of(label)),
    })
    const values = Array.from(logits)
    expect(close(numbers(found.loss), [loss(values)], n)).toMatchObject({ passed: true })
    const moved = (c: number, by: number): number => loss(values.map((value, i) => (i === c ? value + by : value)))
    const slopes = values.map((_, c) => (moved(c, 1e-5) - moved(c, -1e-5)) / 2e-5)
    expect(close(numbers(found.gradient), slopes, n)).toMatchObject({ passed: true })
    expect(
      close(
        numbers(found.gradient),
        slopes.map((slope) => -slope),
        n,
      ),
    ).toMatchObject({ passed: false })
  })
})
