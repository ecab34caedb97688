/** Reductions of a matmul's rows as one kernel that never stores it: equal to the separate nodes, or refused with the reason. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { reordered } from '../fuse/compare.js'
import { refusal } from '../refusal.js'
import { reducedRows, refusedRows } from './graphs.js'
import { bothWays, planned, productOf, readOps } from './host.js'

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = readOps()
})

/** Many rows and few: whole groups, several and a part of one, fewer columns than a group, one column, one row. */
const sizes = [
  { m: 9, n: 64 },
  { m: 11, n: 70 },
  { m: 12, n: 5 },
  { m: 5, n: 64 },
  { m: 7, n: 77 },
  { m: 3, n: 9 },
  { m: 4, n: 1 },
  { m: 1, n: 40 },
]

describe('rows of a matmul reduced in groups', () => {
  it.each(reducedRows)('$name equals its separate nodes', (given) => {
    for (const size of sizes) {
      const [apart, fused] = bothWays(given, ops, { ...size, b: 2, k: 6, v: Math.min(4, size.n) })
      expect(Object.keys(fused)).toEqual(Object.keys(apart))
      for (const [name, values] of Object.entries(apart)) reordered(Array.from(fused[name] ?? []), Array.from(values))
    }
  })

  it.each(reducedRows)('$name has no tensor of the size of the matmul', (given) => {
    const kernel = productOf(planned(given, ops))
    const { reduced } = kernel
    expect(reduced).toBeDefined()
    const isWhole = ({ dims }: { readonly dims: readonly string[] }): boolean =>
      dims.includes(kernel.m) && dims.includes(kernel.n)
    expect([...kernel.tensors, ...(reduced?.shared ?? [])].filter(isWhole)).toEqual([])
    expect(reduced?.shared.map(({ dims }) => dims.at(-1))).toEqual(reduced?.shared.map(() => reduced.groups))
  })
})

describe('reductions that do not follow from parts of a row are refused', () => {
  it.each(refusedRows)('$name', (given) => {
    const error = refusal(() => planned(given, ops))
    expect(error.code).toBe('plan.illegal')
    expect(error.message).toContain(given.words)
  })
})
