/** Matmuls with their prologues and epilogues as one kernel: equal to the separate nodes, or refused with the node and the reason. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { reordered } from '../fuse/compare.js'
import { refusal } from '../refusal.js'
import { computed, crossed, crossedToo, handedOn, inParts, partial, products, refused, refusedPartials } from './graphs.js'
import { bothWays, planned, productOf, readOps } from './host.js'

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = readOps()
})

const dims = { b: 3, m: 5, n: 44, k: 32, v: 4, h: 16, g: 2 }

describe('a group with matmuls equals its separate nodes', () => {
  it.each([...products, ...crossed, ...crossedToo, ...inParts, ...computed, ...partial, ...handedOn])('$name', (given) => {
    const [apart, fused] = bothWays(given, ops, dims)
    expect(Object.keys(fused)).toEqual(Object.keys(apart))
    for (const [name, values] of Object.entries(apart)) {
      expect(new Set(Array.from(values)).size).toBeGreaterThan(4)
      reordered(Array.from(fused[name] ?? []), Array.from(values))
    }
  })
})

describe('a group is refused', () => {
  it.each([...refused, ...refusedPartials])('$name', (given) => {
    const error = refusal(() => planned(given, ops))
    expect(error.code).toBe('plan.illegal')
    expect(error.message).toContain(given.words)
  })

  it('a transposed read of an operand gives another result: the comparison can fail', () => {
    const given = products.find(({ name }) => name === 'columns_first')
    if (given === undefined) throw new Error('there is no such case')
    const kernel = productOf(planned(given, ops))
    expect(kernel.tensors.find(({ name }) => name === kernel.products[0].b.tensor)?.dims).toEqual([kernel.k, kernel.n])
    const square = { ...dims, n: 7, k: 7 }
    const [apart] = bothWays(given, ops, square)
    const other = products.find(({ name }) => name === 'plain')
    const [, misread] = bothWays(other ?? given, ops, square)
    expect(() => reordered(Array.from(misread.last ?? []), Array.from(apart.last ?? []))).toThrow()
  })
})
