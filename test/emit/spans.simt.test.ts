/** Windows that are read in spans: on the simt device against the evaluation of their kernels, by their loops, and with planted faults. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluateMapped } from '../../src/loop/evaluate_mapped.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { mapKernel } from '../../src/schedule/map.js'
import { isInSpans, type MappedKernel } from '../../src/schedule/mapped.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { max, maximum, minimum, op, sum, tensor } from 'heddle'
const types = { T: ['f16'] } as const
const grid = { dims: ['b', 'm', 'n'], types, inputs: { x: tensor('T', 'b m n') }, outputs: { y: tensor('T', 'b m n') } } as const
export const blur = op('blur', { ...grid, dims: ['b', 'm', 'n', 'k'], inputs: { x: tensor('T', 'b m n'), f: tensor('T', 'b k') },
  body: ({ x, f }, { m, n }) => (b, i, j) => {
    const s = sum(3, (p) => sum(5, (q) => (i + 2 * p > 1 && i + 2 * p < m + 2 && j + q >= 2 && n > j + q - 2 ? x(b, i + 2 * p - 2, j + q - 2) : 0) * f(b, 0)))
    return { y: s * 0.5 + x(b, i, j) }
  } })
export const highest = op('highest', { ...grid,
  body: ({ x }, { n }) => (b, i, j) => ({ y: max(3, (q) => (j - q >= 0 ? x(b, i, maximum(j - q, 0)) : -1000)) }) })
export const ahead = op('ahead', { ...grid, types: { T: ['f32', 'bf16'] },
  body: ({ x }, { n }) => (b, i, j) => ({ y: x(b, i, j) - (j + 3 < n ? x(b, i, minimum(j + 3, n - 1)) : 0) + (!(j < 1) ? x(b, i, j - 1) : 0) }) })
export const bytes = op('bytes_beside', { ...grid, types: { T: ['i8'] }, outputs: { y: tensor('f32', 'b m n') },
  body: ({ x }, { n }) => (b, i, j) => ({ y: sum(7, (q) => (j + q - 3 >= 0 && j + q - 3 < n ? x(b, i, j + q - 3) : 0)) }) })
export const taps = op('taps', { ...grid, dims: ['b', 'm', 'n', 'k'], inputs: { x: tensor('T', 'b m n'), f: tensor('T', 'k n') },
  body: ({ x, f }) => (b, i, j) => {
    const at = (p: number) => (i + p - 2 >= 0 ? x(b, maximum(i + p - 2, 0), j) : 0) * f(p, j)
    return { y: at(0) + at(1) + at(2) }
  } })
`

const inputs = { x: (i: number) => ((i * 37 + (i >> 4)) % 113) / 16 - 3, f: (i: number) => 1 + (i % 5) / 8 }
const sizes = [
  [1, 1],
  [3, 40],
  [5, 8],
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

const map = (name: string, T: 'f16' | 'f32' | 'bf16' | 'i8'): MappedKernel =>
  mapKernel({ kernel: named(name), types: { T }, dims: {} })

describe('windows along rows', () => {
  it.each([
    ['blur', 'f16', 8],
    ['highest', 'f16', 8],
    ['ahead', 'f32', 4],
    ['ahead', 'bf16', 8],
    ['bytes_beside', 'i8', 8],
  ] as const)('%s of %s has a launch in spans for rows of whole chunks, and one for others', async (name, T, width) => {
    const { split } = map(name, T)
    expect(split?.fixed?.map(({ mapped, whole }) => [isInSpans(mapped), whole])).toEqual([[true, { dim: 'n', width }]])
    for (const [m, n] of sizes) {
      const subject = { kernel: named(name), class: 'reduction' as const, inputs, extents: () => ({ b: 2, k: 3 }) }
      expect(await check(host, subject, host.entry(`${name}__${T}`), m, n)).toBe('')
    }
  })

  it('taps that a body writes out share the loads of several steps', async () => {
    const mapped = map('taps', 'f16')
    expect(mapped.instance.kernel.storedPlaces).toBe(4)
    for (const [m, n] of sizes) {
      const subject = { kernel: named('taps'), class: 'reduction' as const, inputs, extents: () => ({ b: 2, k: 3 }) }
      expect(await check(host, subject, host.entry('taps__f16'), m, n)).toBe('')
    }
  })
})

describe('loops with spans', () => {
  const dims = { b: 2, m: 3, n: 24, k: 3 }
  const tensors = {
    x: { data: Float64Array.from({ length: 2 * 3 * 24 }, (_, i) => inputs.x(i)), shape: [2, 3, 24] },
    f: { data: Float64Array.from({ length: 6 }, (_, i) => inputs.f(i)), shape: [2, 3] },
  }
  const outputs = (passes: typeof loopPasses): readonly (readonly number[])[] =>
    evaluateMapped(map('blur', 'f16'), { tensors, dims }, passes).map(({ outputs: made }) => Array.from(made.y?.data ?? []))
  const faulty = (change: (loop: Loop) => Loop): typeof loopPasses => ({
    ...loopPasses,
    version: (loops, frame) =>
      loopPasses.version(
        mapLoops(loops, (loop) => [change(loop)]),
        frame,
      ),
  })

  it('compute what the body does', () => {
    const wanted = Array.from(evaluateKernel(named('blur'), tensors, dims).y?.data ?? [])
    const found = outputs(loopPasses)
    expect(found).toHaveLength(2)
    for (const each of found) for (const [i, value] of each.entries()) expect(value).toBeCloseTo(wanted[i] ?? Number.NaN, 9)
  })

  it('with an element at another distance compute something else', () => {
    const further = (shift: number, after: number): number => shift + (shift < after ? 1 : 0)
    const moved = faulty((loop) => {
      if (loop.kind !== 'copy' || loop.span === undefined) return loop
      const { rows, after } = loop.span
      return { ...loop, span: { ...loop.span, rows: rows.map(({ row, shift }) => ({ row, shift: further(shift, after) })) } }
    })
    expect(outputs(moved)).not.toEqual(outputs(loopPasses))
  })

  it('that end before their elements are refused', () => {
    const short = faulty((loop) =>
      loop.kind === 'copy' && loop.span !== undefined ? { ...loop, span: { ...loop.span, before: 1 } } : loop,
    )
    expect(() => outputs(short)).toThrow('ends before its elements')
  })
})
