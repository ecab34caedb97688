/** The largest elements of each group of a row, and more of them than a warp holds, on the simt device against the IR and by hand. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rankValues } from '../../src/ir/top_k.js'
import { read, refuses } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { idiv, op, row, sum, tensor, topK } from 'heddle'
// The best groups by their two best, then the best of these: the author's first form.
export const gate = op('gate', {
  dims: ['m', 'n', 'g', 'k'],
  inputs: { x: tensor('f32', 'm g n'), bias: tensor('f32', 'g n') }, outputs: { score: tensor('f32', 'm g'), expert: tensor('i32', 'm k') },
  facts: { k: 3, n: { atLeast: 2 } },
  body: ({ x, bias }, { g, n, k }) => (m) => {
    const score = row(g, (i) => {
      const two = topK(2, n, (j) => x(m, i, j) + bias(i, j))
      return two.values(0) + two.values(1)
    })
    const groups = topK(2, g, (i) => score(i))
    const [one, two] = [groups.indices(0), groups.indices(1)]
    const best = topK(3, g * n, (c) => (idiv(c, n) === one || idiv(c, n) === two ? x(m, idiv(c, n), c % n) : -Infinity))
    return { score: row(g, (i) => score(i)), expert: row(k, (i) => best.indices(i)) }
  },
})
// Places and values of three in each column of a window, NaN and short rows among them, by an index that runs.
export const each = op('each', {
  dims: ['m', 'n', 'g'],
  inputs: { x: tensor('f32', 'm g n') }, outputs: { at: tensor('i32', 'm g'), third: tensor('f32', 'm g') },
  body: ({ x }, { g, n }) => (m) => {
    const third = row(g, (i) => topK(3, n, (j) => x(m, i, j)).values(2))
    return {
      at: row(g, (i) => {
        const { indices } = topK(3, n, (j) => x(m, i, j))
        return sum(3, (r) => (indices(r) + 1) * (r + 1))
      }),
      third: row(g, (i) => third(i)),
    }
  },
})
// A hundred of a row.
export const hundred = op('hundred', {
  dims: ['m', 'n', 'k'], inputs: { x: tensor('f32', 'm n') }, outputs: { value: tensor('f32', 'm k'), at: tensor('i32', 'm k') },
  facts: { k: 100 },
  body: ({ x }, { n, k }) => (m) => {
    const best = topK(100, n, (c) => x(m, c) * 2)
    return { value: row(k, (i) => best.values(i)), at: row(k, (i) => best.indices(i)) }
  },
})
`.replace(
  'const [one, two] = [groups.indices(0), groups.indices(1)]',
  'const one = groups.indices(0)\n    const two = groups.indices(1)',
)

/** Many equal values, infinities and NaN. */
const hard = (i: number): number =>
  i % 11 === 3
    ? Number.NaN
    : i % 17 === 5
      ? Number.NEGATIVE_INFINITY
      : i % 23 === 7
        ? Number.POSITIVE_INFINITY
        : ((i * 7) % 13) - 6

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

describe('rankings', () => {
  it.each(['gate', 'each', 'hundred'])('%s', async (name) => {
    const complaints: string[] = []
    for (const [m, n] of [
      [1, 2],
      [13, 8],
      [5, 33],
      [2, 257],
      [1, 4096],
    ] as const) {
      const x = name === 'gate' ? (i: number) => ((i * 37) % 1009) / 8 : hard
      const k = name === 'hundred' ? 100 : 3
      const subject = { kernel: named(name), class: 'exact' as const, inputs: { x }, extents: () => ({ g: 4, k }) }
      if (name === 'hundred' || m * n < 600) complaints.push(await check(host, subject, host.entry(name), m, n))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
  it('agree with topK when a warp ranks it', () => {
    const of = (name: string, dims: Readonly<Record<string, number>>, shape: readonly number[], output: string) => {
      const data = Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => hard(i))
      const x: HostTensor = { shape, data }
      return { data, made: Array.from(evaluateKernel(named(name), { x }, dims)[output]?.data ?? []) }
    }
    for (const n of [1, 2, 40, 150]) {
      const { data, made } = of('hundred', { m: 1, n, k: 100 }, [1, n], 'at')
      expect(made).toEqual(rankValues(100, n, (i) => data[i] ?? 0).indices)
      const each = of('each', { m: 1, n, g: 3 }, [1, 3, n], 'at')
      const wanted = [0, 1, 2].map((g) =>
        rankValues(3, n, (i) => each.data[g * n + i] ?? 0).indices.reduce((sum, at, r) => sum + (at + 1) * (r + 1), 0),
      )
      expect(each.made).toEqual(wanted)
    }
  })
})

describe('rankings that are refused', () => {
  const op = (value: string): string => `import { op, row, sum, tensor, topK } from 'heddle'
export const t = op('t', {
  dims: ['m', 'g', 'n'], inputs: { x: tensor('f32', 'm g n') }, outputs: { y: tensor('f32', 'm g') },
  body: ({ x }, { g, n }) => (m) => ({ y: row(g, (i) => ${value}) }),
})
`
  const hint =
    'make it an op whose row indices name the group, (t, g) => ({ best: topK(2, e, (j) => x(t, g, j)).values(0) }), and read its output'
  it('may be in a branch or an inner loop of an element, or many', () => {
    const nested = 'a topK cannot be made in a branch, or in a loop inside an element'
    refuses(op('(i > 0 ? «topK(2, n, (j) => x(m, i, j))».values(1) : 0)'), { code: 'row', message: nested, hint })
    refuses(op('sum(n, (l) => «topK(2, n, (j) => x(m, i, j) + l)».values(1))'), { code: 'row', message: nested, hint })
    refuses(op('«topK(9, n, (j) => x(m, i, j))».values(1)'), {
      code: 'row',
      message: 'a topK inside an element ranks 1 to 8 elements, a number that is written out',
      hint,
    })
    // The hint works.
    const followed = op('0')
      .replace('(m) => ({ y: row(g, (i) => 0) })', '(m, g) => ({ y: topK(9, n, (j) => x(m, g, j)).values(1) })')
      .replace('{ g, n }', '{ n }')
    expect(read(followed).diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  })
  it('read other values than those they rank', () =>
    refuses(op('topK(2, n, (j) => x(m, i, j)).values(«2»)'), {
      code: 'shape',
      message: '2 elements are ranked, there is no element 2',
      hint: 'indices count from 0',
    }))
})
