/** Grouped matmuls on the simt device against the bodies of their ops: each main loop, with rows that choose their matrix in any order. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { idiv, maximum, op, row, sum, tensor } from 'heddle'
const types = { T: ['f32', 'f16', 'bf16'] } as const
export const grouped = op('grouped', {
  dims: ['m', 'n', 'k', 'e'], types,
  inputs: { x: tensor('T', 'm k'), w: tensor('T', 'e n k'), expert: tensor('i32', 'm') }, outputs: { y: tensor('f32', 'm n') },
  body: ({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(expert(m), c, i)) }),
})
// Rows of tokens with several experts each, a bias of the expert, and a weight of the router.
export const expertUp = op('expert_up', {
  dims: ['s', 'n', 'k', 'e', 'm'], types,
  inputs: { x: tensor('T', 's k'), w: tensor('T', 'e n k'), b: tensor('T', 'e n'), expert: tensor('i32', 'm'), gate: tensor('f32', 'm') },
  outputs: { y: tensor('T', 'm n'), raw: tensor('f32', 'm n') },
  facts: { m: '2*s' },
  body: ({ x, w, b, expert, gate }, { k, n }) => (m) => {
    const up = row(n, (c) => sum(k, (i) => w(expert(m), c, i) * x(idiv(m, 2), i)) + b(expert(m), c))
    return { y: row(n, (c) => maximum(0, gate(m) * up(c))), raw: row(n, (c) => up(c)) }
  },
})
// Rows without an expert, two row axes, factors of different types.
export const padded = op('padded', {
  dims: ['b', 'm', 'n', 'k', 'e'],
  inputs: { x: tensor('f16', 'b m k'), w: tensor('f32', 'e n k'), expert: tensor('i32', 'b m') }, outputs: { y: tensor('f16', 'b m n') },
  facts: { expert: { index: 'e', also: [-1] } },
  body: ({ x, w, expert }, { k, n }) => (b, m) => ({
    y: row(n, (c) => (expert(b, m) < 0 ? 7 : sum(k, (i) => x(b, m, i) * w(expert(b, m), c, i)))),
  }),
})
`

type Choice = (row: number, dims: Readonly<Record<string, number>>) => number
const choices: Readonly<Record<string, Choice>> = {
  sorted: (i, { m = 1, e = 1 }) => Math.floor((i * e) / m),
  'all of one': (_, { e = 1 }) => e - 1,
  'half of one': (i, { m = 1, e = 1 }) => (2 * i < m ? 1 % e : (i * 7) % e),
  'sorted with empty runs': (i, { m = 1, e = 1 }) => Math.floor((i * e) / m / 3) * 3,
  unsorted: (i, { e = 1 }) => (i * 13 + (i >> 3)) % e,
}

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

const wrong = async (name: string, type: string, choice: Choice, extents: Record<string, number>): Promise<string> => {
  const subject = { kernel: named(name), class: 'exact' as const, inputs: { expert: choice }, extents: () => extents }
  const { m = 1, n = 1 } = extents
  return check(host, subject, host.entry(type === '' ? name : `${name}__${type}`), m, n)
}

describe('grouped matmuls', () => {
  it.each(['f32', 'f16', 'bf16'])('of every order of rows, in %s', async (type) => {
    const complaints: string[] = []
    for (const [name, choice] of Object.entries(choices)) {
      for (const [m, n, k, e] of [
        [1, 24, 64, 3],
        [2, 8, 520, 2],
        [7, 130, 72, 5],
        [9, 16, 64, 4],
        [200, 136, 200, 7],
        [300, 130, 72, 2],
        [150, 9, 37, 4],
      ] as const) {
        const found = await wrong('grouped', type, choice, { m, n, k, e })
        if (found !== '') complaints.push(`${name} ${m} x ${n} x ${k} of ${e}: ${found}`)
      }
    }
    expect(complaints).toEqual([])
  })
  it.each(['f16', 'bf16'])('with gathered rows, a bias of the matrix and two results, in %s', async (type) => {
    const complaints: string[] = []
    for (const choice of Object.values(choices))
      for (const s of [1, 4, 70]) complaints.push(await wrong('expert_up', type, choice, { s, m: 2 * s, n: 72, k: 136, e: 6 }))
    expect(complaints.filter((found) => found !== '')).toEqual([])
  })
  it('with rows that choose none', async () => {
    const choice: Choice = (i, { e = 1 }) => ((i * 5) % (e + 1)) - 1
    expect(await wrong('padded', '', choice, { b: 3, m: 40, n: 20, k: 48, e: 4 })).toBe('')
    expect(await wrong('padded', '', choice, { b: 2, m: 3, n: 20, k: 48, e: 4 })).toBe('')
  })
  it('of more matrices than are counted at a time', async () => {
    const choice: Choice = (i) => (i * 4099) % 9000
    expect(await wrong('grouped', 'f16', choice, { m: 600, n: 8, k: 8, e: 9000 })).toBe('')
  })
  it('of no rows, no columns and empty sums', async () => {
    for (const extents of [
      { m: 0, n: 8, k: 8, e: 2 },
      { m: 20, n: 0, k: 8, e: 2 },
      { m: 20, n: 8, k: 0, e: 2 },
      { m: 3, n: 8, k: 0, e: 2 },
    ])
      expect(await wrong('grouped', 'f16', () => 1, extents)).toBe('')
  })
})
