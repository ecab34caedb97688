/** Ops of several launches on the simt device against the evaluation of their kernel as a whole. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { argmax, exp, layout, max, monoid, op, row, rsqrt, sum, tensor } from 'heddle'
const types = { T: ['f16'] } as const
export const wholeNorm = op('whole_norm', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { m, n }) => (i, j) => ({ y: x(i, j) * rsqrt(sum(m, (r) => sum(n, (c) => x(r, c) ** 2)) + 1) }) })
export const planes = op('planes', { dims: ['b', 'g', 'k', 's'], types, inputs: { x: tensor('T', 'b g k s'), w: tensor('T', 'g k') }, outputs: { y: tensor('T', 'b g k s'), mean: tensor('f32', 'b g k') },
  body: ({ x, w }, { k, s }) => (b, g, j) => {
    const mean = sum(k, (i) => sum(s, (c) => x(b, g, i, c))) / (k * s)
    const spread = sum(k, (i) => sum(s, (c) => (x(b, g, i, c) - mean) ** 2)) / (k * s)
    return { y: row(s, (c) => (x(b, g, j, c) - mean) * rsqrt(spread + 1e-3) * w(g, j)), mean }
  } })
export const softmaxOfAll = op('softmax_of_all', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { m, n }) => (i, j) => {
    const top = max(m, (r) => max(n, (c) => x(r, c)))
    return { y: exp(x(i, j) - top) / sum(m, (r) => sum(n, (c) => exp(x(r, c) - top))) }
  } })
const spread = monoid({ identity: { n: 0, mean: 0, m2: 0 }, combine: (a, b) => {
  const n = a.n + b.n
  const d = b.mean - a.mean
  const f = n > 0 ? b.n / n : 0
  return { n, mean: a.mean + d * f, m2: a.m2 + b.m2 + d * d * a.n * f }
} })
export const ofRows = op('of_rows', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { n }) => (i, j) => {
    const s = spread.reduce(n, (c) => ({ n: 1, mean: x(i, c), m2: 0 }))
    return { y: (x(i, j) - s.mean) * rsqrt(s.m2 / n + 1e-3) }
  } })
const columns = layout('columns', ['a', 'b', 'c'], { offset: (i, n) => (i.a * n.c + i.c) * n.b + i.b, size: (n) => n.a * n.b * n.c })
export const interchanged = op('interchanged', { dims: ['g', 'm', 'n'], types, inputs: { x: tensor('T', 'g n m'), w: tensor('T', 'm') }, outputs: { y: tensor('T', 'g m n', columns) },
  body: ({ x, w }, { m, n }) => (g, i, j) => ({ y: x(g, j, i) * w(i) * rsqrt(sum(m, (r) => sum(n, (c) => x(g, c, r) ** 2)) + 1) }) })
export const threeAxes = op('three_axes', { dims: ['h', 'm', 'n'], types, inputs: { x: tensor('T', 'h m n'), w: tensor('T', 'm'), u: tensor('T', 'h n') }, outputs: { y: tensor('T', 'h m n') },
  body: ({ x, w, u }, { h, m, n }) => (a, i, j) => {
    const top = max(h, (p) => max(m, (q) => max(n, (r) => x(p, q, r) * w(q))))
    return { y: (x(a, i, j) - top) * u(a, j) + w(i) }
  } })
export const columnNorm = op('column_norm', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n'), w: tensor('T', 'n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x, w }, { m }) => (i, j) => {
    const mean = sum(m, (r) => x(r, j)) / m
    const spread = sum(m, (r) => (x(r, j) - mean) ** 2) / m
    return { y: (x(i, j) - mean) * rsqrt(spread + 1e-3) * w(j) }
  } })
export const columnSpread = op('column_spread', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('f32', 'n') },
  body: ({ x }, { m }) => (j) => {
    const mean = sum(m, (r) => x(r, j)) / m
    return { y: sum(m, (r) => (x(r, j) - mean) ** 2) / m }
  } })
export const statistics = op('statistics', { dims: ['b', 'm', 'n'], types, inputs: { x: tensor('T', 'b m n') }, outputs: { y: tensor('f32', 'b'), top: tensor('f32', 'b') },
  body: ({ x }, { m, n }) => (b) => ({ y: sum(m, (r) => sum(n, (c) => x(b, r, c))), top: max(m, (r) => max(n, (c) => x(b, r, c))) }) })
export const fromBest = op('from_best', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { m, n }) => (i, j) => ({ y: x(i, j) - x(argmax(m, (r) => sum(n, (c) => x(r, c))), j) }) })
`

/** Sizes of both forms: the CPU device takes one launch for groups of up to 1,024 elements, and for four groups or more. */
const inputs = { x: (i: number) => ((i * 37 + (i >> 4)) % 113) / 16 - 3, w: (i: number) => 1 + (i % 5) / 8 }

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('an op of several launches', () => {
  it.each([
    ['whole_norm', true],
    ['softmax_of_all', true],
    ['of_rows', true],
    ['from_best', false],
    ['planes', true],
    ['interchanged', true],
    ['three_axes', true],
  ])('%s', async (name, isInRows) => {
    const kernel = named(name)
    const { split } = mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
    expect(split?.inRows !== undefined).toBe(isInRows)
    const complaints: string[] = []
    for (const [m, n] of [
      [1, 1],
      [3, 40],
      [17, 9],
      [10, 104],
    ] as const) {
      const subject = { kernel, class: 'reduction' as const, inputs, extents: () => ({ b: 1, g: 3, k: m, s: n, h: 2 }) }
      complaints.push(await check(host, subject, host.entry(`${name}__f16`), m, n))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
})

it.each(['column_norm', 'column_spread'])('%s: a launch per walk for few columns of many rows', async (name) => {
  const kernel = named(name)
  const { split } = mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
  expect(split?.inRows?.mapped.program.kind).toBe('columns')
  expect(split?.before.map(({ program }) => program.kind)).toEqual(
    ['columns', 'columns'].slice(0, name === 'column_norm' ? 2 : 1),
  )
  const complaints: string[] = []
  // The CPU device takes one launch for up to 127 rows, and for 8 columns or more; sections for more than 48 rows.
  for (const [m, n] of [
    [40, 5],
    [200, 1],
    [300, 7],
    [200, 24],
    [131, 67],
  ] as const) {
    const subject = { kernel, class: 'reduction' as const, inputs }
    complaints.push(await check(host, subject, host.entry(`${name}__f16`), m, n))
  }
  expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
})

it('blocks that divide a walk leave their results to the last of them', async () => {
  const kernel = named('statistics')
  expect(mapKernel({ kernel, types: { T: 'f16' }, dims: {} }).program.kind).toBe('totals')
  const subject = { kernel, class: 'reduction' as const, inputs, extents: () => ({ b: 5 }) }
  // 1, 3 and 11 blocks of 256 chunks.
  const complaints: string[] = []
  for (const [m, n] of [
    [12, 100],
    [37, 111],
    [96, 229],
  ] as const)
    complaints.push(await check(host, subject, host.entry('statistics__f16'), m, n))
  expect(complaints).toEqual(['', '', ''])
})
