/** Statements that points of a kernel share: each is evaluated once for each point of the axes that it depends on. Evaluations are counted. */
import { expect, it } from 'vitest'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'

const op = (body: string, outputs = "{ y: tensor('f32', 'b m n') }") => `
  { dims: ['b', 'm', 'n'], inputs: { x: tensor('f32', 'b m n') }, outputs: ${outputs}, facts: { b: { atLeast: 1 }, m: { atLeast: 3 }, n: { atLeast: 3 } },
  body: ({ x }, dims) => ${body} })`
const spec = `import { fold, histogram, monoid, op, row, scan, sum, tensor, toInt, topK } from 'heddle'
const pair = monoid({ identity: { a: 0, b: 0 }, combine: (x, y) => ({ a: x.a + y.a, b: x.b + y.b }) })
export const whole = op('whole', ${op('(b, i, j) => ({ y: x(b, i, j) * sum(dims.b, (p) => sum(dims.m, (q) => sum(dims.n, (r) => x(p, q, r) * 2))) })')}
export const channel = op('channel', ${op('(b, i, j) => ({ y: x(b, i, j) * sum(dims.b, (p) => sum(dims.n, (r) => x(p, i, r) * 2)) })')}
export const chain = op('chain', ${op('(b, i, j) => { const mean = sum(dims.b, (p) => sum(dims.n, (r) => x(p, i, r) * 2))\n const v = sum(dims.b, (p) => sum(dims.n, (r) => (x(p, i, r) - mean) * 2))\n return { y: x(b, i, j) * v } }')}
export const merged = op('merged', ${op('(b, i, j) => { const s = pair.reduce(dims.m, (q) => ({ a: x(b, q, j) * 2, b: 1 }))\n return { y: x(b, i, j) * (s.a + s.b) } }')}
export const ranked = op('ranked', ${op('(b, i, j) => { const s = topK(3, dims.m, (q) => x(b, q, j) * 2)\n return { y: x(b, i, j) * s.values(2) } }')}
export const counted = op('counted', ${op('(b, i, j) => { const s = histogram(4, dims.m, (q) => toInt(x(b, q, j) * 2))\n return { y: x(b, i, j) * s(2) } }')}
export const folded = op('folded', ${op('(b, i, j) => { const s = fold(dims.m, { h: 0 }, ({ h }, q) => ({ h: h + x(b, q, j) * 2 }))\n return { y: x(b, i, j) * s.h } }')}
export const own = op('own', ${op('(b, i, j) => ({ y: x(b, i, j) * sum(dims.m, (q) => x(b, q, j) * x(b, i, j)) })')}
export const scanned = op('scanned', ${op('(b, i) => { const s = scan(dims.n, (j) => x(0, i, j) * 2)\n return { y: row(dims.n, (j) => s(j) * x(b, i, j)) } }')}
`

const [b, m, n] = [2, 3, 5]
const x: HostTensor = { data: Float64Array.from({ length: b * m * n }, (_, i) => ((i * 7) % 11) - 5), shape: [b, m, n] }
const specs = read(spec)
const named = (name: string): Kernel => {
  const kernel = specs.kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

/** The output of a kernel, and the number of float32 results that its evaluation computes. */
function evaluated(name: string): { readonly results: number; readonly y: readonly number[] } {
  let results = 0
  const stray = (value: number): number => {
    results++
    return value
  }
  const { y } = evaluateKernel(named(name), { x }, { b, m, n }, {}, 'strayed', stray)
  return { results, y: [...(y?.data ?? [])] }
}

it('reads the specs', () => expect(specs.diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([]))

const at = (p: number, q: number, r: number): number => x.data[(p * m + q) * n + r] ?? Number.NaN
const total = (count: number, term: (i: number) => number): number =>
  Array.from({ length: count }, (_, i) => term(i)).reduce((all, each) => all + each, 0)
const channelOf = (i: number, mean = 0): number => total(b, (p) => total(n, (r) => (at(p, i, r) - mean) * 2))
const column = (p: number, j: number): readonly number[] => Array.from({ length: m }, (_, q) => at(p, q, j) * 2)

const cases: Readonly<Record<string, { readonly y: (p: number, i: number, j: number) => number; readonly once: number }>> = {
  whole: { y: (p, i, j) => at(p, i, j) * total(m, (q) => channelOf(q)), once: 68 },
  channel: { y: (p, i, j) => at(p, i, j) * channelOf(i), once: 66 },
  chain: { y: (p, i, j) => at(p, i, j) * channelOf(i, channelOf(i)), once: 132 },
  merged: { y: (p, i, j) => at(p, i, j) * (total(m, (q) => column(p, j)[q] ?? 0) + m), once: 90 },
  ranked: { y: (p, i, j) => at(p, i, j) * Math.min(...column(p, j)), once: 60 },
  counted: { y: (p, i, j) => at(p, i, j) * column(p, j).filter((value) => value === 2).length, once: 90 },
  folded: { y: (p, i, j) => at(p, i, j) * total(m, (q) => column(p, j)[q] ?? 0), once: 120 },
  scanned: { y: (p, i, j) => at(p, i, j) * total(j + 1, (r) => at(0, i, r) * 2), once: 45 },
  // Along all axes: nothing is shared, and nothing may be.
  own: { y: (p, i, j) => at(p, i, j) * total(m, (q) => at(p, q, j) * at(p, i, j)), once: 120 },
}

it.each(Object.entries(cases))('%s', (name, { y, once }) => {
  const found = evaluated(name)
  const expected = Array.from({ length: b * m * n }, (_, i) => y(Math.floor(i / (m * n)), Math.floor(i / n) % m, i % n))
  expect(found.y).toEqual(expected)
  expect(found.results).toBe(once)
})
