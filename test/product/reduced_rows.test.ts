/** Reductions of a matmul's rows as one kernel that never stores it: equal to the separate nodes, or refused with the reason. */
import { beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import { evaluateReduced } from '../../src/ir/evaluate_product.js'
import { emptyKernel, type Kernel } from '../../src/ir/kernel.js'
import type { ReducedRows } from '../../src/ir/product.js'
import { tileProblem } from '../../src/schedule/tiles.js'
import { reordered } from '../fuse/compare.js'
import { refusal } from '../refusal.js'
import { bothWays, planned, productOf, readOps } from './host.js'
import { reducedRows, refusedRows } from './reduced_graphs.js'

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

/** Rows with equal elements, infinities and NaN in the first, a middle or every group. */
const special: Readonly<Record<string, (column: number) => number>> = {
  equal: () => 0.5,
  tiesAcrossGroups: (c) => (c % 40 === 3 ? 2 : 1),
  nothing: () => -Infinity,
  nothingInTheFirstGroup: (c) => (c < 32 ? -Infinity : c % 5),
  nothingInTheLastGroups: (c) => (c >= 32 ? -Infinity : c % 5),
  infinite: (c) => (c === 50 ? Infinity : c % 3),
  notANumber: (c) => (c === 41 ? Number.NaN : c % 3),
  notANumberFirst: (c) => (c === 0 ? Number.NaN : -c),
  noNumbers: () => Number.NaN,
  negativeZero: (c) => (c === 7 ? 0 : -0),
}

it('tiles of a matmul that reduces its rows are not chosen by measurement', () => {
  const kernel = productOf(planned(reducedRows[0] ?? fail(), ops))
  const problem = tileProblem({ kind: 'matmul', tile: 'mma_64x64', split: 1 }, kernel, 'f16', { length: 64, depth: 64 })
  expect(problem).toBe('matmuls whose rows are reduced have their own tiles')
  expect(
    tileProblem({ kind: 'matmul', tile: 'mma_64x64', split: 1 }, { ...kernel, reduced: undefined }, 'f16', {
      length: 64,
      depth: 64,
    }),
  ).toBeUndefined()
})

describe('rows with special elements', () => {
  const [m, n] = [Object.keys(special).length, 70]
  const cases = reducedRows.filter(({ name }) => ['cross_entropy', 'best', 'choice', 'nearest', 'masked'].includes(name))

  it.each(cases)('$name has the results of the whole rows', (given) => {
    const kernel = productOf(planned(given, ops))
    const rows = Object.values(special).flatMap((element) => Array.from({ length: n }, (_, c) => element(c)))
    const product = { data: Float64Array.from(rows), shape: [m, n] }
    const [accumulator = ''] = kernel.products.map((each) => each.accumulator)
    const dims = { [kernel.m]: m, [kernel.n]: n, [kernel.k]: 1 }
    const inputs = Object.fromEntries(
      kernel.epilogue.tensors.flatMap(({ name, access, dtype, dims: axes }) => {
        const shape = axes.map((axis) => dims[axis] ?? 1)
        const size = shape.reduce((all, extent) => all * extent, 1)
        const data = Float64Array.from({ length: size }, (_, i) => (dtype === 'i32' ? i % 4 : (i % 4) / 4))
        return access === 'in' ? [[name, name === accumulator ? product : { data, shape }] as const] : []
      }),
    )
    const wanted = evaluateKernel(kernel.epilogue, inputs, dims, { temperature: 0.75 })
    const made = evaluateReduced(kernel.reduced ?? none, inputs, dims, { temperature: 0.75 })
    for (const [name, { data }] of Object.entries(wanted))
      specialEqual(Array.from(made[name]?.data ?? []), Array.from(data), name)
  })

  it('finds a part that is added without its scale', () => {
    const kernel = productOf(planned(cases[0] ?? reducedRows[0] ?? fail(), ops))
    const { reduced = none } = kernel
    const body = reduced.rest.body.map((stmt) =>
      stmt.kind === 'reduce' && stmt.monoid === 'sum' && stmt.value.kind === 'call'
        ? { ...stmt, value: stmt.value.args[1] ?? stmt.value }
        : stmt,
    )
    const product = { data: Float64Array.from({ length: 2 * 70 }, (_, i) => i % 37), shape: [2, 70] }
    const inputs = { [kernel.products[0].accumulator]: product, label: { data: Float64Array.of(1, 2), shape: [2] } }
    const dims = { [kernel.m]: 2, [kernel.n]: 70, [kernel.k]: 1 }
    const wrong = evaluateReduced({ ...reduced, rest: { ...reduced.rest, body } }, inputs, dims, {})
    const right = evaluateKernel(kernel.epilogue, inputs, dims, {})
    expect(() => specialEqual(Array.from(wrong.lse?.data ?? []), Array.from(right.lse?.data ?? []), 'lse')).toThrow()
  })
})

const none: ReducedRows = { width: '', groups: '', partials: emptyKernel, rest: emptyKernel, shared: [] }

function fail(): never {
  throw new Error('there is no case')
}

/** Equal up to rounding, NaN where NaN is expected. */
function specialEqual(found: readonly number[], wanted: readonly number[], name: string): void {
  const plain = (values: readonly number[], at: readonly number[]): number[] =>
    values.map((value, i) => (Number.isFinite(at[i] ?? 0) ? value : 0))
  const others = (values: readonly number[], at: readonly number[]): number[] =>
    values.filter((_, i) => !Number.isFinite(at[i] ?? 0))
  expect(others(found, wanted), name).toEqual(others(wanted, wanted))
  reordered(plain(found, wanted), plain(wanted, wanted))
}

describe('reductions that do not follow from parts of a row are refused', () => {
  it.each(refusedRows)('$name', (given) => {
    const error = refusal(() => planned(given, ops))
    expect(error.code).toBe('plan.illegal')
    expect(error.message).toContain(given.words)
  })
})
