/** Histograms with readers: counts and their scan in one kernel, on the simt device against the IR's own evaluation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read, refuses } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { argsort, histogram, idiv, max, op, row, scan, sum, tensor, topK, toFloat, toInt } from 'heddle'
// The first token of each expert, all in one row.
export const starts = op('starts', {
  dims: ['n', 'm'], inputs: { expert: tensor('i32', 'n') }, outputs: { start: tensor('i32', 'm'), count: tensor('i32', 'm') },
  body: ({ expert }, { n, m }) => () => {
    const count = histogram(m, n, (i) => expert(i))
    const end = scan(m, (j) => idiv(count(j) + 3, 4) * 4)
    return { start: row(m, (j) => end(j) - count(j)), count: row(m, (j) => count(j)) }
  },
})
// Counts of rows, read at indices from the elements.
export const rarity = op('rarity', {
  dims: ['m', 'n'], inputs: { label: tensor('i32', 'm n') }, outputs: { y: tensor('f32', 'm n'), most: tensor('i32', 'm') },
  body: ({ label }, { n }) => (m) => {
    const count = histogram(11, n, (c) => label(m, c) % 11)
    const top = max(11, (j) => count(j))
    return { y: row(n, (c) => toFloat(count(label(m, c) % 11)) / top), most: top }
  },
  facts: { n: { atLeast: 1 }, label: { from: 0, to: 100 } },
})
// Two of them, and the most frequent values, in rows of many.
export const common = op('common', {
  dims: ['m', 'n', 'k'], inputs: { a: tensor('i32', 'm n'), b: tensor('i32', 'm n') }, outputs: { best: tensor('i32', 'm k'), same: tensor('i32', 'm') },
  facts: { k: 2 },
  body: ({ a, b }, { n, k }) => (m) => {
    const left = histogram(16, n, (c) => a(m, c))
    const right = histogram(16, n, (c) => b(m, c))
    const two = topK(2, 16, (j) => toFloat(left(j) + right(j)))
    return { best: row(k, (i) => two.indices(i)), same: sum(16, (j) => (left(j) === right(j) ? 1 : 0)) }
  },
})
// A histogram with a name that nothing but an output reads.
export const plain = op('plain', {
  dims: ['m', 'n', 'k'], inputs: { a: tensor('i32', 'm n') }, outputs: { count: tensor('i32', 'm k') },
  body: ({ a }, { n, k }) => (m) => {
    const count = histogram(k, n, (c) => a(m, c))
    return { count }
  },
})
`

const label = (i: number): number => ((i * 7 + (i >> 3)) % 23) - 3
const inputs = { expert: label, label: (i: number) => (i * 13) % 97, a: label, b: (i: number) => label(i + 5) }

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}
beforeAll(async () => {
  const specs = read(text)
  expect(specs.diagnostics.filter(({ code }) => code.startsWith('HED') && code !== 'HED112')).toEqual([])
  kernels = specs.kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('histograms that are read', () => {
  it.each(['starts', 'rarity', 'common', 'plain'])('%s', async (name) => {
    const complaints: string[] = []
    for (const [m, n] of [
      [1, 1],
      [20, 7],
      [7, 60],
      [130, 90],
      [3, 1027],
      [1, 20011],
      [4096, 2],
    ] as const) {
      const k = name === 'plain' ? 17 : 2
      const subject = { kernel: named(name), class: 'exact' as const, inputs, extents: () => ({ k }) }
      complaints.push(await check(host, subject, host.entry(name), m, n))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
  it('have shared memory for 4096 bins, and more are refused at launch', async () =>
    await expect(check(host, { kernel: named('starts'), class: 'exact', inputs }, host.entry('starts'), 4097, 5)).rejects.toThrow(
      'bins of a histogram that is read',
    ))
  it('are counted where they are stored, unless something else reads them', () => {
    expect(named('plain').body.map(({ kind }) => kind)).toEqual(['histogram'])
    expect(named('starts').body.map(({ kind }) => kind)).toContain('counts')
  })
})

describe('histograms that cannot be read', () => {
  const op = (body: string): string => `import { foldRow, histogram, op, row, sum, tensor } from 'heddle'
export const t = op('t', {
  dims: ['n', 'm'], inputs: { x: tensor('i32', 'n') }, outputs: { y: tensor('i32', 'm') },
  body: ({ x }, { n, m }) => () => ${body},
})
`
  const hint = 'name it, and read its counts: const count = histogram(...), then count(j)'
  it('have no name', () => {
    refuses(op('({ y: row(m, (j) => «histogram(m, n, (i) => x(i))» + j) })'), {
      code: 'row',
      message: 'a histogram cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    })
    refuses(op('{ const t = sum(m, «histogram(m, n, (i) => x(i))»)\n return { y: row(m, (j) => j + t) } }'), {
      code: 'row',
      message: 'sum takes a row or a function of an index, histogram(m, n, (i) => x(i)) is a histogram',
      hint,
    })
  })
  it('count in bins that only the data knows', () =>
    refuses(op('{ const c = histogram(x(0), n, «(i) => x(i)»)\n return { y: row(m, (j) => c(j)) } }'), {
      code: 'shape',
      message: 'the bins of histogram c are neither a dimension nor a number',
      hint: 'count in as many bins as there may be',
    }))
})
