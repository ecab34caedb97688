/** Windows that are written out, and groups of neighbouring channels as columns, on the simt device against the evaluation of their kernel. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { max, op, row, rsqrt, sum, tensor } from 'heddle'
const types = { T: ['f16'] } as const
export const depthwise = op('depthwise', { dims: ['b', 'm', 'n', 'u', 'v'], facts: { u: 3, v: 3 }, types, inputs: { x: tensor('T', 'b m n'), w: tensor('T', 'b u v') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x, w }, { m, n, u, v }) => (b, i, j) => ({ y: sum(u, (p) => sum(v, (q) => (i + p - 1 >= 0 && i + p - 1 < m && j + q - 1 >= 0 && j + q - 1 < n ? x(b, i + p - 1, j + q - 1) * w(b, p, q) : 0))) }) })
export const pooled = op('pooled', { dims: ['b', 'm', 'n', 'h', 'k'], types, inputs: { x: tensor('T', 'b h k') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x }, { h, k }) => (b, i, j) => ({ y: max(3, (p) => max(3, (q) => (2 * i + p < h && 2 * j + q < k ? x(b, 2 * i + p, 2 * j + q) : -100))) }) })
export const causal = op('causal', { dims: ['b', 'm', 'n', 'u'], facts: { u: 4 }, types, inputs: { x: tensor('T', 'b m n'), w: tensor('T', 'u n') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x, w }, { u }) => (b, i, j) => ({ y: sum(u, (p) => (i + p - 3 >= 0 ? x(b, i + p - 3, j) * w(p, j) : 0)) }) })
export const distances = op('distances', { dims: ['m', 'n', 'u'], facts: { u: 3 }, types, inputs: { x: tensor('T', 'm u'), w: tensor('T', 'n u') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x, w }, { u }) => (i, j) => ({ y: sum(u, (p) => (x(i, p) - w(j, p)) ** 2) }) })
export const alongRow = op('along_row', { dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n'), w: tensor('T', 'm') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x, w }, { n }) => (i) => ({ y: row(n, (j) => sum(3, (p) => (j + p - 2 >= 0 ? x(i, j + p - 2) : 0)) * w(i)) }) })
export const twoOutputs = op('two_outputs', { dims: ['b', 'm', 'n', 'h'], types, inputs: { x: tensor('T', 'b h n') }, outputs: { y: tensor('T', 'b m n'), z: tensor('T', 'b m n') },
  body: ({ x }, { h }) => (b, i, j) => ({ y: sum(2, (p) => (i + p + 1 < h ? x(b, i + p + 1, j) : 0)), z: max(2, (p) => (i + p < h ? x(b, i + p, j) : -100)) }) })
export const groups = op('groups', { dims: ['b', 'h', 'p', 'g', 'k'], types, inputs: { x: tensor('T', 'b h p g k'), w: tensor('T', 'g k') }, outputs: { y: tensor('T', 'b h p g k') },
  body: ({ x, w }, { h, p, k }) => (b, i, r, g, j) => {
    const mean = sum(h, (q) => sum(p, (s) => sum(k, (c) => x(b, q, s, g, c)))) / (h * p * k)
    const spread = sum(h, (q) => sum(p, (s) => sum(k, (c) => (x(b, q, s, g, c) - mean) ** 2))) / (h * p * k)
    return { y: (x(b, i, r, g, j) - mean) * rsqrt(spread + 1e-3) * w(g, j) }
  } })
export const inRows = op('in_rows_of', { dims: ['b', 'p', 'g', 'k'], types, inputs: { x: tensor('T', 'b p g k') }, outputs: { y: tensor('T', 'b p g k') },
  body: ({ x }, { p, k }) => (b, r, g) => {
    const top = max(p, (s) => max(k, (c) => x(b, s, g, c)))
    return { y: row(k, (j) => x(b, r, g, j) - top) }
  } })
`

const inputs = { x: (i: number) => ((i * 37 + (i >> 4)) % 113) / 16 - 3, w: (i: number) => 1 + (i % 5) / 8 }
const sizes = [
  [1, 1],
  [3, 40],
  [17, 9],
  [6, 64],
] as const

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

/** Complaints at all sizes. */
async function complaintsOf(
  name: string,
  extents: (m: number, n: number) => Readonly<Record<string, number>>,
): Promise<string[]> {
  const kernel = named(name)
  const complaints: string[] = []
  for (const [m, n] of sizes) {
    const subject = { kernel, class: 'reduction' as const, inputs, extents: () => extents(m, n) }
    complaints.push(await check(host, subject, host.entry(`${name}__f16`), m, n))
  }
  return complaints.filter((complaint) => complaint !== '')
}

describe('windows that are written out', () => {
  it.each([
    ['depthwise', { u: 3, v: 3 }, [8, 1]],
    ['causal', { u: 4 }, [8]],
    ['distances', { u: 3 }, [1]],
  ] as const)('%s: launches for the lengths that facts state, and one for others', async (name, dims, widths) => {
    const { split } = mapKernel({ kernel: named(name), types: { T: 'f16' }, dims: {} })
    expect(split?.fixed).toMatchObject(widths.map((vec) => ({ dims, mapped: { vec, program: { kind: 'elementwise' } } })))
    expect(await complaintsOf(name, () => ({ b: 2, ...dims }))).toEqual([])
    expect(await complaintsOf(name, () => ({ b: 2, ...dims, u: 2 }))).toEqual([])
  })

  it.each([
    ['pooled', 1, undefined],
    ['along_row', 1, { dim: 'n', width: 8 }],
    ['two_outputs', 8, undefined],
  ] as const)('%s: one launch for lengths in the body, and one in spans', async (name, vec, whole) => {
    const mapped = mapKernel({ kernel: named(name), types: { T: 'f16' }, dims: {} })
    expect(mapped.split?.fixed?.map((each) => each.whole)).toEqual(whole && [whole])
    expect(mapped).toMatchObject({ vec, program: { kind: 'elementwise' } })
    const high = name === 'two_outputs' ? 1 : 2
    expect(await complaintsOf(name, (m, n) => ({ b: 2, h: high * m + 3, k: 2 * n }))).toEqual([])
  })
})

describe('groups of neighbouring channels', () => {
  it.each([
    ['groups', 3],
    ['in_rows_of', 2],
  ] as const)('%s: launches over columns, whose results are combined where they are read', async (name, launches) => {
    const { split } = mapKernel({ kernel: named(name), types: { T: 'f16' }, dims: {} })
    expect(split?.columns?.launches.map(({ program }) => program.kind)).toEqual(Array.from({ length: launches }, () => 'columns'))
    // Groups that are whole chunks are walked.
    for (const k of [1, 5, 8])
      expect(await complaintsOf(name, (m, n) => ({ b: 2, h: 2, p: m, g: Math.min(n, 11), k }))).toEqual([])
  })
})
