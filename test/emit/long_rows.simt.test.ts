/** Rows in both forms on the simt device, where rows are divided from a 64th of the usual length on: beside the body, and beside other batches. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { getOwn } from '../../src/ir/get_own.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { OpClass } from '../../src/verify/tolerance.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels } from './host.js'

const text = `import { abs, argmax, exp, log, max, maximum, monoid, op, row, rsqrt, scan, sum, tensor } from 'heddle'
const types = { T: ['f32', 'f16', 'bf16'] } as const
export const softmax = op('softmax', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { n }) => (m) => {
    const v = row(n, (c) => x(m, c))
    const top = max(n, v)
    const e = row(n, (c) => exp(v(c) - top))
    const total = sum(n, (c) => e(c))
    return { y: row(n, (c) => e(c) / total) }
  } })
export const norm = op('norm', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n'), g: tensor('T', 'n'), b: tensor('T', 'n') }, outputs: { y: tensor('T', 'm n'), mean: tensor('f32', 'm') },
  attrs: { eps: 1e-3 }, body: ({ x, g, b }, { n, eps }) => (m) => {
    const v = row(n, (c) => x(m, c))
    const mean = sum(n, (c) => v(c)) / n
    const r = rsqrt(sum(n, (c) => (v(c) - mean) ** 2) / n + eps)
    return { y: row(n, (c) => (v(c) - mean) * r * g(c) + b(c)), mean }
  } })
export const entropy = op('entropy', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n'), labels: tensor('i32', 'm') }, outputs: { loss: tensor('f32', 'm') },
  facts: { labels: { index: 'n' } }, body: ({ x, labels }, { n }) => (m) => {
    const top = max(n, (c) => x(m, c))
    return { loss: top + log(sum(n, (c) => exp(x(m, c) - top))) - x(m, labels(m)) }
  } })
export const best = op('best', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('i32', 'm') },
  body: ({ x }, { n }) => (m) => ({ y: argmax(n, (c) => x(m, c)) }) })
export const quantised = op('quantised', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('i8', 'm n'), s: tensor('f32', 'm') },
  body: ({ x }, { n }) => (m) => {
    const v = row(n, (c) => x(m, c))
    const top = maximum(max(n, (c) => abs(v(c))), 1e-8)
    return { y: row(n, (c) => (v(c) * 127) / top), s: top / 127 }
  } })
export const single = op('single', { dims: ['n'], types, inputs: { x: tensor('T', 'n') }, outputs: { y: tensor('T', 'n'), total: tensor('f32', '') },
  body: ({ x }, { n }) => () => {
    const total = sum(n, (c) => abs(x(c))) + 1
    return { y: row(n, (c) => x(c) / total), total }
  } })
const spread = monoid({ identity: { n: 0, mean: 0, m2: 0 }, combine: (a, b) => {
  const n = a.n + b.n
  const d = b.mean - a.mean
  const f = n > 0 ? b.n / n : 0
  return { n, mean: a.mean + d * f, m2: a.m2 + b.m2 + d * d * a.n * f }
} })
export const merged = op('merged', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n'), d: tensor('f32', 'm') },
  body: ({ x }, { n }) => (m) => {
    const s = spread.reduce(n, (c) => ({ n: 1, mean: x(m, c), m2: 0 }))
    return { y: row(n, (c) => (x(m, c) - s.mean) * rsqrt(s.m2 / n + 1e-3)), d: s.m2 / n }
  } })
// The loop over rounds of chunks has an index of the same name as an output.
export const running = op('running', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n'), g: tensor('T', 'n') }, outputs: { y: tensor('f32', 'm n'), round: tensor('T', 'm n') },
  body: ({ x, g }, { n }) => (m) => {
    const s = scan(n, (c) => x(m, c) * g(c))
    return { y: row(n, (c) => s(c) + g(c)), round: row(n, (c) => abs(x(m, c))) }
  } })
`
const names: readonly (readonly [name: string, opClass: OpClass])[] = [
  ['softmax', 'reduction'],
  ['norm', 'reduction'],
  ['entropy', 'reduction'],
  ['best', 'exact'],
  ['quantised', 'reduction'],
  ['single', 'reduction'],
  ['merged', 'reduction'],
  ['running', 'reduction'],
]
const inputs = {
  x: (i: number) => ((i * 37 + (i >> 4)) % 113) / 16 - 3,
  g: (i: number) => 1 + (i % 5) / 9,
  b: (i: number) => (i % 3) / 7,
  labels: (i: number) => i % 7,
}

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => kernels.find((each) => each.name === name) ?? expect.fail(name)
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe.each(names)('%s', (name, opClass) => {
  it.each(['f32', 'f16', 'bf16'] as const)('%s rows of a block each, and divided', async (T) => {
    const kernel = named(name)
    const kept = mapKernel({ kernel, types: { T }, dims: {} }).split?.inRows?.kept ?? expect.fail('one form')
    // The longest row of a block, the first that is divided, one of several blocks, and one of whole chunks.
    const block = Math.floor(kept / 64)
    const complaints: string[] = []
    for (const [m, n] of [
      [3, block],
      [3, block + 1],
      [2, 9001],
      [5, 4096],
    ] as const)
      complaints.push(await check(host, { kernel, class: opClass, inputs }, host.entry(`${name}__${T}`), m, n))
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })

  it('has the same bits in every batch', async () => {
    const kernel = named(name)
    const of = async (m: number, n: number) => {
      const { outputs } = await launch(
        host,
        kernel,
        host.entry(`${name}__f16`),
        { m, n },
        (tensor) => getOwn(inputs, tensor) ?? (() => 0),
      )
      return outputs.map(({ tensor, stored }) => Array.from(stored).slice(0, tensor.dims.includes('n') ? n : 1))
    }
    for (const n of [1000, 7003]) expect(await of(9, n)).toEqual(await of(1, n))
  })
})
