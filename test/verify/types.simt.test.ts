/** The less common storage types, in a user's project: every code in both directions, and typical uses. */
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DType } from '../../src/ir/dtype.js'
import { runOp } from '../../src/lang/run.js'
import { type Device, f8e4m3, f8e5m2, f16, openDevice, type Tensor, tensor, toNumbers } from '../../src/runtime/api/index.js'
import type { CheckReport } from '../../src/verify/check/check.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import * as own from '../projects/types/specs/index.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
let device: Device
beforeAll(async () => {
  root = await ownProject('types')
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device?.close()
  await rm(root, { recursive: true, force: true })
})

const numbers = (of: Tensor<DType>): number[] => Array.from(toNumbers(of))
const drawn = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed * 3.1 + i * 1.7 + i * i * 0.003) * 2))
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

describe('every code, loaded and stored', () => {
  const [m, n] = [256, 256]
  const shape = [m, n]
  const codes = Uint8Array.from({ length: m * n }, (_, i) => i % 256)
  const all = Array.from({ length: m * n }, (_, i) => i)
  const least = -(2 ** 31)
  const edges = [0, 1, -1, least, least + 1, 2 ** 31 - 1, 32_767, 32_768, -32_768, -32_769, 255, -129]
  // All numbers of float16, and every second time a neighbour of the midpoint between two 8-bit numbers.
  const x = f16.toNumbers(Uint16Array.from(all)).map((value, i) => (i % 2 === 0 ? value : Math.fround(value * (1 + 2 ** -20))))
  const k = all.map((i) => (i % 2 === 0 ? at(edges, (i / 2) % edges.length) : i - 2 ** 15))
  const inputs = {
    e4: tensor('f8e4m3', shape, codes),
    e5: tensor('f8e5m2', shape, codes),
    short: tensor('i16', shape, Int16Array.from(all)),
    count: tensor(
      'u32',
      shape,
      Uint32Array.from(k, Math.abs).map((value) => Math.min(value, 2 ** 31 - 1)),
    ),
    long: tensor('i64', shape, k),
    x: tensor('f32', shape, x),
    k: tensor('i32', shape, k),
  }
  /** A NaN has many codes, and is stored as one. */
  const quiet = (list: Uint8Array, noNumber: (magnitude: number) => boolean) =>
    list.map((code) => (noNumber(code & 0x7f) ? 0x7f : code))

  it('equals the host to the last bit, and its body', async () => {
    const found = await device.call(own.storage, inputs)
    expect(found.e4Same.data).toEqual(quiet(codes, (magnitude) => magnitude === 0x7f))
    expect(found.e5Same.data.slice(0, 0x7c)).toEqual(codes.slice(0, 0x7c))
    // Infinities are read, and saturate when they are stored.
    expect(found.e5Same.data.slice(0x7c, 0x80)).toEqual(Uint8Array.of(0x7b, 0x7f, 0x7f, 0x7f))
    expect(found.e5Same.data.slice(0x80, 0xfc)).toEqual(codes.slice(0x80, 0xfc))
    expect(found.e5Same.data.slice(0xfc, 0x100)).toEqual(Uint8Array.of(0xfb, 0x7f, 0x7f, 0x7f))
    for (const name of ['short', 'count', 'long'] as const) expect(found[`${name}Same`].data).toEqual(inputs[name].data)
    expect(found.e4Value.data).toEqual(f8e4m3.toNumbers(codes))
    expect(found.e5Value.data).toEqual(f8e5m2.toNumbers(codes))
    expect(found.e4Made.data).toEqual(f8e4m3.from(x))
    expect(found.e5Made.data).toEqual(f8e5m2.from(x))
    expect(numbers(found.shortMade)).toEqual(k.map((value) => Math.max(-32_768, Math.min(value, 32_767))))
    expect(numbers(found.countMade)).toEqual(k.map((value) => Math.max(0, value)))
    expect(numbers(found.longMade)).toEqual(k)
    const given = Object.fromEntries(Object.entries(inputs).map(([name, each]) => [name, { shape, data: toNumbers(each) }]))
    const body = runOp(own.storage, given)
    expect(f8e4m3.from(body.e4Made?.data ?? [])).toEqual(found.e4Made.data)
    expect(f8e5m2.from(body.e5Made?.data ?? [])).toEqual(found.e5Made.data)
    for (const name of ['shortMade', 'countMade', 'longMade'] as const)
      expect(Array.from(body[name]?.data ?? []).map((value) => value + 0)).toEqual(numbers(found[name]))
  })
  it('refuses integers that kernels would read as others', async () => {
    const small = (name: 'count' | 'long', value: number) =>
      device.call(own.storage, {
        ...{ e4: tensor('f8e4m3', [1, 2], [0, 1]), e5: tensor('f8e5m2', [1, 2], [0, 1]), short: tensor('i16', [1, 2], [0, 1]) },
        ...{ count: tensor('u32', [1, 2], [0, name === 'count' ? value : 1]) },
        ...{ long: tensor('i64', [1, 2], [0, name === 'long' ? value : 1]) },
        ...{ x: tensor('f32', [1, 2], [0, 1]), k: tensor('i32', [1, 2], [0, 1]) },
      })
    for (const [name, value] of [
      ['count', 2 ** 31],
      ['long', 2 ** 31],
      ['long', least - 1],
    ] as const)
      await expect(small(name, value)).rejects.toMatchObject({
        code: 'call.value',
        message: expect.stringContaining(`storage: ${name}: element 1 is ${value}, and kernels read`),
      })
    expect(numbers((await small('long', least)).longSame)).toEqual([0, least])
  })
})

describe('typical uses', () => {
  const [m, n] = [3, 52]
  const relative = tolerance({ dtype: 'f8e4m3', class: 'elementwise' })
  it('rows in 8-bit floats with a scale each, and back', async () => {
    const x = drawn(m * n, 1)
    const { q, scale } = await device.call(own.quantiseRows, { x: tensor('f32', [m, n], x) })
    const largest = (row: number): number => Math.max(...x.slice(row * n, (row + 1) * n).map(Math.abs))
    expect(numbers(scale)).toEqual(Array.from({ length: m }, (_, row) => Math.fround(Math.fround(largest(row)) / 448)))
    for (let row = 0; row < m; row++)
      expect(
        Math.max(
          ...numbers(q)
            .slice(row * n, (row + 1) * n)
            .map(Math.abs),
        ),
      ).toBe(448)
    const { y } = await device.call(own.dequantiseRows, { q, scale })
    expect(compare(toNumbers(y), x, { ...relative, absolute: relative.absolute * at(toNumbers(scale), 0) })).toMatchObject({
      passed: true,
    })
    const other = numbers(y).with(1, at(numbers(y), 1) * 1.2)
    expect(compare(other, x, { ...relative, absolute: relative.absolute * at(toNumbers(scale), 0) }).passed).toBe(false)
  })
  it('a linear layer of 8-bit weights, scaled on load and after the sums', async () => {
    const [k, rows] = [64, 8]
    const [x, scale] = [drawn(rows * k, 2), [0.5, 0.25, 2, 1, 0.125, 0.0625, 1, 4]]
    const w = tensor('f8e4m3', [scale.length, k], drawn(scale.length * k, 3))
    const weights = { w, scale: tensor('f32', [scale.length], scale) }
    const model = await device.load(own.linear8, { plan: 'in-kernels', weights })
    const { before, behind } = await model.run({ x: tensor('f32', [rows, k], x) })
    const wanted = Array.from({ length: rows * scale.length }, (_, i) => {
      const [row, column] = [Math.floor(i / scale.length), i % scale.length]
      const terms = Array.from({ length: k }, (_, c) => at(x, row * k + c) * at(numbers(w), column * k + c))
      return at(scale, column) * terms.reduce((a, b) => a + b, 0)
    })
    const bound = tolerance({ dtype: 'f32', class: 'matmul', length: k, scale: 16 })
    for (const found of [before, behind]) {
      expect(compare(toNumbers(found), wanted, bound)).toMatchObject({ passed: true })
      expect(compare(toNumbers(found), wanted.with(3, at(wanted, 3) + 0.01), bound).passed).toBe(false)
    }
    const unfused = await device.load(own.linear8, { plan: 'unfused', weights })
    await expect(unfused.run({ x: tensor('f32', [rows, k], x) })).rejects.toMatchObject({
      code: 'matmul.dtype',
      message: 'linear8/sums: no library multiplies f32 and f8e4m3 into f32',
    })
  })
  it('a table read by indices of 64 bits', async () => {
    const table = drawn(5 * 12, 4)
    const ids = tensor('i64', [3], BigInt64Array.of(4n, 0n, 2n))
    const { y } = await device.call(own.gatherRows, { table: tensor('f32', [5, 12], table), ids })
    expect(numbers(y)).toEqual([4, 0, 2].flatMap((id) => table.slice(12 * id, 12 * id + 12)))
    const outside = device.call(own.gatherRows, { table: tensor('f32', [5, 12], table), ids: tensor('i64', [1], [5]) })
    await expect(outside).rejects.toThrow(/out of bounds/)
  })
  it('sound samples, and a running count', async () => {
    const pcm = tensor('i16', [2, 4], [0, 16_384, -32_768, 32_767, 1, 2, 3, -4])
    const { y, clipped } = await device.call(own.fromPcm, { pcm, before: tensor('u32', [2], [5, 7]) })
    expect(numbers(y)).toEqual(numbers(pcm).map((value) => value / 32_768))
    expect(clipped.data).toEqual(Uint32Array.of(7, 7))
  })
  it('masks: stored conditions, read as conditions, and replaced in place', async () => {
    const keep = tensor('bool', [2, 3], [true, true, false, false, false, false])
    const x = tensor('f32', [2, 3], [1, 3, 5, 7, 8, 9])
    const found = await device.call(own.aboveMean, { x, keep })
    expect([found.above.data, found.any.data]).toEqual([Uint8Array.of(0, 1, 0, 0, 0, 0), Uint8Array.of(1, 0)])
    const body = runOp(own.aboveMean, { x, keep })
    expect([body.above?.data, body.any?.data].map((each) => Uint8Array.from(each ?? []))).toEqual([
      found.above.data,
      found.any.data,
    ])
    const seen = tensor('bool', [2, 4], Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 1))
    const { next } = await device.call(own.markSeen, { seen, token: tensor('i32', [2], [2, 0]) })
    expect(next.data).toEqual(Uint8Array.of(1, 0, 1, 0, 1, 0, 0, 1))
    const [a, b] = [tensor('bool', [2], [true, false]), tensor('bool', [1], [true])]
    const { y, code } = await device.call(own.differing, { a, b })
    expect([y.data, code.data]).toEqual([Uint8Array.of(0, 1), Uint8Array.of(3, 1)])
  })
  it('every case of every kernel', async () => {
    const { code, out, log } = await heddleIn(root, 'check', '--device', 'simt', '--dtype', 'f16', '--json')
    expect([code, log]).toEqual([0, expect.not.stringContaining('FAIL')])
    const { groups, apart }: CheckReport = JSON.parse(out)
    expect(groups.map(({ name }) => name)).toContain('linear8 in-kernels f16')
    // A matmul left to the library cannot run: the check reports that, and nothing as wrong.
    const reason = 'no library multiplies f32 and f8e4m3 into f32, and no kernel of the plan computes node sums'
    expect(apart).toEqual([{ name: 'linear8 unfused', reason }])
  })
})

describe('invalid uses are refused', () => {
  const head = "import { graph, op, plan, tensor } from 'heddle'\nimport { dequantiseRows, quantiseRows } from './own.js'\n"
  const product = (result: string) => `${head}
export const wrong = graph('wrong', {
  inputs: { x: tensor('f8e4m3', 'm k'), w: tensor('f8e4m3', 'n k') },
  weights: {},
  build: (g, { x, w }) => ({ nodes: {}, outputs: { y: g.matmul('m k, n k -> m n', x, w${result}) } }),
})
export const graphs = { wrong }
`
  it.each([
    [
      'a kernel that rounds to 8 bits on the way and stores nothing there',
      `${head}
export const wrong = graph('wrong', {
  inputs: { x: tensor('f32', 'm n') },
  weights: {},
  build: (g, { x }) => {
    const { q, scale } = g.apply(quantiseRows, { x })
    const y = g.apply(dequantiseRows, { q, scale }).y
    return { nodes: { q, y }, outputs: { y } }
  },
})
export const graphs = { wrong }
export const plans = [plan('both', wrong, { groups: { there_and_back: ['q', 'y'] } })]
`,
      'q stores f8e4m3, whose rounding is lost where the value is not stored: end the group there',
    ],
    ['a product of 8-bit floats that does not say what it is', product(''), 'a factor is stored as f8e4m3'],
    ['sums that are stored in 16 bits', product(", { result: 'i16' }"), 'sums do not fit i16'],
    [
      'a histogram in counts of another type',
      `${head}import { histogram } from 'heddle'
export const wrong = op('wrong', {
  dims: ['m', 'n', 'bins'],
  inputs: { x: tensor('i16', 'm n') },
  outputs: { y: tensor('u32', 'm bins') },
  body: ({ x }, { n, bins }) => (m) => ({ y: histogram(bins, n, (c) => x(m, c)) }),
})
`,
      'output y is stored as u32, a histogram counts in 32 bits',
    ],
    [
      'a constant of a hash',
      `${head}
export const wrong = op('wrong', {
  dims: ['m'],
  inputs: { x: tensor('u32', 'm') },
  outputs: { y: tensor('u32', 'm') },
  body: ({ x }) => (m) => ({ y: x(m) * 2654435761 }),
})
`,
      'HED',
    ],
  ])('%s', async (_, text, reason) => {
    // Graphs and plans are those of the index.
    await rename(join(root, 'specs/index.ts'), join(root, 'specs/own.ts'))
    await writeFile(join(root, 'specs/index.ts'), text)
    const { code, log } = await heddleIn(root, 'gen', '--check')
    await rename(join(root, 'specs/own.ts'), join(root, 'specs/index.ts'))
    expect(log).toContain(reason)
    expect(code).toBe(2)
  })
})
