/** Reductions across rows by monoids of authors, on the simt device against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { columnsOf } from '../../src/schedule/divided/column_reductions.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { abs, int, monoid, op, rsqrt, sum, tensor } from 'heddle'
const types = { T: ['f16'] }
const welford = monoid({
  identity: { count: 0, mean: 0, squares: 0 },
  combine: (x, y) => {
    const count = x.count + y.count
    const share = count > 0 ? y.count / count : 0
    const delta = y.mean - x.mean
    return { count, mean: x.mean + delta * share, squares: x.squares + y.squares + delta * delta * x.count * share }
  },
})
// Number and sum of elements: integers beside floats.
const counted = monoid({
  identity: { count: int(0), total: 0 },
  combine: (x, y) => ({ count: x.count + y.count, total: x.total + y.total }),
})
// The largest magnitude with its sign and its place.
const largest = monoid({
  identity: { value: 0, at: int(2147483647) },
  combine: (x, y) => {
    const isLater = abs(y.value) > abs(x.value) || (abs(y.value) === abs(x.value) && y.at < x.at)
    return { value: isLater ? y.value : x.value, at: isLater ? y.at : x.at }
  },
})
export const normed = op('normed', {
  dims: ['n', 'm'], types, inputs: { x: tensor('T', 'n m') }, outputs: { y: tensor('f32', 'n m') }, facts: { n: { atLeast: 1 } },
  body: ({ x }, { n }) => (i, c) => {
    const s = welford.reduce(n, (r) => ({ count: 1, mean: x(r, c), squares: 0 }))
    return { y: (x(i, c) - s.mean) * rsqrt(s.squares / n + 1) }
  },
})
// Several monoids and a sum share a walk; a later walk reads a field.
export const several = op('several', {
  dims: ['b', 'n', 'm'], inputs: { x: tensor('f32', 'b n m') },
  outputs: { value: tensor('f32', 'b m'), at: tensor('i32', 'b m'), count: tensor('i32', 'b m'), total: tensor('f32', 'b m') },
  body: ({ x }, { n }) => (i, c) => {
    const best = largest.reduce(n, (r) => ({ value: x(i, r, c), at: r }))
    const some = counted.reduce(n, (r) => ({ count: x(i, r, c) > 0 ? 1 : 0, total: x(i, r, c) * 2 }))
    const same = sum(n, (r) => (x(i, r, c) === best.value ? 1 : 0))
    return { value: best.value, at: best.at, count: some.count * 1000 + same, total: some.total + sum(n, (r) => x(i, r, c)) }
  },
})
// Rows that do not count are not loaded.
export const chosen = op('chosen', {
  dims: ['n', 'm'], inputs: { x: tensor('f32', 'n m'), id: tensor('i32', 'n') }, outputs: { total: tensor('f32', 'm'), count: tensor('i32', 'm') },
  body: ({ x, id }, { n }) => (c) => {
    const some = counted.reduce(n, (r) => ({ count: id(r) === 2 ? 1 : 0, total: id(r) === 2 ? x(r, c) : 0 }))
    return { total: some.total, count: some.count }
  },
})
`

const classes = { normed: 'reduction', several: 'exact', chosen: 'exact' } as const
const names = ['normed', 'several', 'chosen'] as const

/** Columns and rows. */
const few = [
  [1, 1],
  [67, 5],
  [9, 131],
] as const
/** Further ones, too many for the reference of `normed`, which reduces a column for each of its elements. */
const sizes = [...few, [7, 33], [9, 259], [200, 131]] as const

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

beforeAll(async () => {
  const specs = read(text)
  expect(specs.diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  kernels = specs.kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('columns reduced by monoids of authors', () => {
  it.each(names)('%s', async (name) => {
    const kernel = named(name)
    const [T] = kernel.types.T ?? []
    expect(columnsOf({ kernel, types: T === undefined ? {} : { T }, dims: {} })).toBeDefined()
    const inputs = { id: (i: number) => (i * 5 + (i >> 3)) % 4 }
    const entry = host.entry(T === undefined ? name : `${name}__${T}`)
    const complaints: string[] = []
    for (const [columns, rows] of name === 'normed' ? few : sizes) {
      const subject = { kernel, class: classes[name], inputs, extents: () => ({ b: 3 }) }
      complaints.push(await check(host, subject, entry, columns, rows))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
})
