/** Ops beyond rows that users request, in a project of its own: each is checked against its body, and against a wrong twin. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { readKernels } from '../../src/verify/check/specs.js'
import { subjectsOf } from '../../src/verify/check/subjects.js'
import { compare } from '../../src/verify/compare.js'
import { check } from '../../src/verify/testing.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { columnSum } from '../projects/workshop/specs/columns.js'
import { boundedWalk, gatedRecurrence } from '../projects/workshop/specs/folds.js'
import { adam } from '../projects/workshop/specs/optimisers.js'
import { sortRows } from '../projects/workshop/specs/sorts.js'
import { channelMoments, gradientNorm } from '../projects/workshop/specs/totals.js'
import { inTurn } from '../turns.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string

beforeAll(async () => {
  root = await ownProject('workshop')
})
afterAll(() => rm(root, { recursive: true, force: true }))

const options = () => ({ root, device: 'simt' as const, dtypes: ['f32' as const] })

describe('the workshop', () => {
  it('equals its bodies, a rotating third of them', async () => {
    const names = subjectsOf(await readKernels(root)).kernels.map(({ name }) => name)
    expect(names.length).toBeGreaterThan(30)
    const { code, out } = await heddleIn(root, 'check', ...inTurn(names), '--device', 'simt', '--dtype', 'f32', '--json')
    const report = JSON.parse(out)
    expect(report.groups.flatMap((group: { failures: readonly unknown[] }) => group.failures)).toEqual([])
    expect(code).toBe(0)
    expect(report.passed).toBeGreaterThan(1000)
  })

  it('finds bodies that its kernels do not compute', async () => {
    const nothing = { ...columnSum, body: () => (_c: number) => ({ y: 0 }) }
    expect((await check(nothing, options())).failed).toBeGreaterThan(100)
    const still = { ...adam, body: () => (_c: number) => ({ p2: 0, m2: 0, v2: 0, stored: 0 }) }
    expect((await check(still, options())).failed).toBeGreaterThan(50)
    const unit = { ...gradientNorm, body: () => () => ({ scale: 1, norm: 1, top: 1 }) }
    expect((await check(unit, options())).failed).toBeGreaterThan(100)
    const free = { ...boundedWalk, body: () => (_m: number) => ({ y: () => 0 }) }
    expect((await check(free, options())).failed).toBeGreaterThan(100)
  })
})

describe('sums of long columns', () => {
  it('equal plain JavaScript, and do not depend on how many columns there are', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    await using device = await openDevice('simt', { root })
    const [m, wide] = [2311, 100]
    const value = (row: number, column: number): number => Math.fround(Math.sin(row * 0.37 + column * 1.9) * 10 ** (row % 4))
    const run = async (n: number): Promise<number[]> => {
      const x = Float32Array.from({ length: m * n }, (_, i) => value(Math.floor(i / n), i % n))
      return Array.from(toNumbers((await device.call(columnSum, { x: tensor('f32', [m, n], x) })).y))
    }
    const [many, few] = [await run(wide), await run(5)]
    expect(few).toEqual(many.slice(0, 5))
    const sumOf = (column: number): number => Array.from({ length: m }, (_, row) => value(row, column)).reduce((a, b) => a + b, 0)
    const exact = Array.from({ length: wide }, (_, column) => sumOf(column))
    const bound = tolerance({ dtype: 'f32', class: 'reduction', length: m, scale: 1000 })
    expect(compare(many, exact, bound)).toMatchObject({ passed: true })
    expect(
      compare(
        many,
        exact.map((sum) => -sum),
        bound,
      ),
    ).toMatchObject({ passed: false })
  })
})

describe('totals of channels', () => {
  it('equal plain JavaScript, and do not depend on how many channels there are', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    await using device = await openDevice('simt', { root })
    const [b, h, w] = [3, 41, 37]
    const value = (channel: number, i: number): number => Math.fround(Math.sin(channel * 2.1 + i * 0.37) * 10 ** (i % 3))
    const run = async (k: number) => {
      const size = h * w
      const x = Float32Array.from({ length: b * k * size }, (_, i) => {
        const [image, channel] = [Math.floor(i / (k * size)), Math.floor(i / size) % k]
        return value(channel, image * size + (i % size))
      })
      const { mean } = await device.call(channelMoments, { x: tensor('f32', [b, k, h, w], x) })
      return Array.from(toNumbers(mean))
    }
    const [many, one] = [await run(5), await run(1)]
    expect(one).toEqual(many.slice(0, 1))
    const count = b * h * w
    const exact = many.map((_, k) => Array.from({ length: count }, (_, i) => value(k, i)).reduce((a, c) => a + c, 0) / count)
    const bound = tolerance({ dtype: 'f32', class: 'reduction', length: count, scale: 100 })
    expect(compare(many, exact, bound)).toMatchObject({ passed: true })
    expect(compare(many, exact.with(2, 1 + (exact[2] ?? 0)), bound)).toMatchObject({ passed: false })
  })
})

describe('recurrences', () => {
  it('equal plain JavaScript, with the same bits for every variant', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    await using device = await openDevice('simt', { root })
    const [n, many, few] = [37, 4300, 3]
    const value = (at: number, scale: number): number => Math.fround(Math.sin(at * scale))
    const run = async (m: number) => {
      const drawn = (scale: number) => Float32Array.from({ length: m * n }, (_, i) => value(i, scale))
      const h0 = Float32Array.from({ length: m }, (_, row) => value(row, 0.3))
      const given = {
        a: tensor('f32', [m, n], drawn(0.7)),
        b: tensor('f32', [m, n], drawn(1.3)),
        z: tensor('f32', [m, n], drawn(2.9).map(Math.abs)),
        h0: tensor('f32', [m], h0),
      }
      const { h, last } = await device.call(gatedRecurrence, given)
      return { h: Array.from(toNumbers(h)), last: Array.from(toNumbers(last)) }
    }
    const [all, some] = [await run(many), await run(few)]
    expect(some.h).toEqual(all.h.slice(0, few * n))
    const exact: number[] = []
    for (let row = 0; row < many; row++) {
      let h = value(row, 0.3)
      for (let at = row * n; at < (row + 1) * n; at++) {
        const z = Math.abs(value(at, 2.9))
        h = z * h + (1 - z) * Math.tanh(value(at, 0.7) * h + value(at, 1.3))
        exact.push(h)
      }
    }
    const bound = tolerance({ dtype: 'f32', class: 'reduction', length: n, scale: 1 })
    expect(compare(all.h, exact, bound)).toMatchObject({ passed: true })
    expect(all.last).toEqual(all.h.filter((_, at) => at % n === n - 1))
    expect(compare(all.h, [0, ...exact.slice(0, -1)], bound)).toMatchObject({ passed: false })
  })
})

describe('sorted rows', () => {
  it('have NaN last and zeros of either sign equal, and are refused if no block has memory for them', async () => {
    expect((await heddleIn(root, 'gen')).code).toBe(0)
    await using device = await openDevice('simt', { root })
    const values = [3, Number.NaN, -0, Number.NEGATIVE_INFINITY, 0, 3, Number.POSITIVE_INFINITY, -0]
    const { places, descending } = await device.call(sortRows, { x: tensor('f32', [1, 8], Float32Array.from(values)) })
    expect(Array.from(toNumbers(places))).toEqual([3, 2, 4, 7, 0, 5, 6, 1])
    expect(Array.from(toNumbers(descending))).toEqual([6, 0, 5, 2, 4, 7, 3, 1])
    await expect(device.call(sortRows, { x: tensor('f32', [1, 601], new Float32Array(601)) })).rejects.toThrow(
      'has memory for 600 elements of a row that is sorted, got 601',
    )
  })
})
