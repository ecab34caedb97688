/** Kernels that replace elements in place, of forms no shipped op has, on the simt device against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels, type Subject } from './host.js'

/** One op for each way an element may get its place. */
const text = `import { op, sum, tensor } from 'heddle'
export const placeEach = op('place_each', {
  dims: ['m', 'n'],
  inputs: { cache: tensor('f32', 'm n'), x: tensor('f32', 'm'), at: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm n') },
  updates: { y: 'cache' },
  body: ({ cache, x, at }) => (m, s) => ({ y: s === at(m) ? x(m) * 2 : cache(m, s) }),
})
export const placeEachFirst = op('place_each_first', {
  dims: ['m', 'n'],
  inputs: { cache: tensor('i32', 'n m'), x: tensor('i32', 'm'), at: tensor('i32', 'm') },
  outputs: { y: tensor('i32', 'n m') },
  updates: { y: 'cache' },
  body: ({ cache, x, at }) => (s, m) => ({ y: s === at(m) ? x(m) : cache(s, m) }),
})
export const placeTable = op('place_table', {
  dims: ['m', 'n', 'o'],
  inputs: { cache: tensor('f32', 'n m'), table: tensor('f32', 'n m'), step: tensor('i32', 'o') },
  outputs: { y: tensor('f32', 'n m') },
  updates: { y: 'cache' },
  body: ({ cache, table, step }) => (s, m) => ({ y: s === step(0) ? table(step(0), m) + table(s, m) : cache(s, m) }),
})
export const placeOne = op('place_one', {
  dims: ['n', 'o'],
  inputs: { cache: tensor('f32', 'n'), x: tensor('f32', 'o'), step: tensor('i32', 'o') },
  outputs: { y: tensor('f32', 'n') },
  updates: { y: 'cache' },
  body: ({ cache, x, step }) => (s) => ({ y: s === step(0) ? x(0) : cache(s) }),
})
export const placeMean = op('place_mean', {
  dims: ['m', 'n', 'k', 'o'],
  inputs: { cache: tensor('f32', 'k m'), x: tensor('f32', 'm n'), step: tensor('i32', 'o') },
  outputs: { y: tensor('f32', 'k m') },
  updates: { y: 'cache' },
  body: ({ cache, x, step }, { n }) => (s, m) => {
    const total = sum(n, (c) => x(m, c))
    return { y: s === step(0) ? total : cache(s, m) }
  },
})
export const placeSpan = op('place_span', {
  dims: ['m', 'n', 'k'],
  inputs: { cache: tensor('f32', 'm n k'), x: tensor('f32', 'm k'), at: tensor('i32', 'm'), count: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm n k') },
  updates: { y: 'cache' },
  body: ({ cache, x, at, count }) => (m, s, c) => {
    const inside = s >= at(m) && s < at(m) + count(m)
    return { y: inside ? x(m, c) + s : cache(m, s, c) }
  },
})
`

/** From before the first place to one after the last. */
const around = (i: number, { n }: Readonly<Record<string, number>>): number => ((i * 5) % ((n ?? 0) + 2)) - 1

let host: Host
let kernels: readonly Kernel[]

beforeAll(async () => {
  const specs = read(text)
  expect(specs.diagnostics).toEqual([])
  kernels = specs.kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('kernels that replace elements in place', () => {
  it.each(['place_each', 'place_each_first', 'place_table', 'place_one', 'place_mean', 'place_span'])('%s', async (name) => {
    const kernel = kernels.find((candidate) => candidate.name === name)
    if (kernel === undefined) throw new Error(`no kernel ${name}`)
    const complaints: string[] = []
    for (const [m, n] of [
      [1, 1],
      [3, 2],
      [5, 17],
      [33, 64],
      [130, 9],
    ] as const) {
      for (const step of [-1, 0, n - 1, n]) {
        const extents = () => ({ o: 1, k: name === 'place_span' ? 3 : n })
        const inputs = { at: around, step: () => step, count: (i: number) => i % 4 }
        const subject: Subject = { kernel, class: 'exact', extents, inputs }
        complaints.push(await check(host, subject, host.entry(name), m, n))
      }
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
})
