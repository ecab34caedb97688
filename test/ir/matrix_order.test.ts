/** Orders of matrices are found by evaluating layouts: each shipped one, its strides, and near misses. */
import { describe, expect, it } from 'vitest'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { call, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { TensorParam } from '../../src/ir/kernel.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import { type Matrices, type MatrixAxes, type MatrixOrder, matricesOf } from '../../src/ir/matrix_order.js'
import { substitute } from '../../src/ir/walk.js'

const lowered = new Map(
  readSpecsOrThrow({ root: process.cwd(), specs: ['specs/layouts'] }).layouts.map((each) => [each.name, each]),
)
const layoutOf = (name: string, axes: readonly string[]): Layout => {
  const found = name === 'row' ? rowMajor(axes) : lowered.get(name)
  if (found === undefined) throw new Error(`no layout ${name}`)
  return found
}
const tensor = (dims: readonly string[], layout: Layout): TensorParam => ({ name: 'x', access: 'in', dtype: 'i8', dims, layout })

/** Offset of a logical index the analysis names, at concrete extents. */
function offsetAt({ layout, dims }: TensorParam, indices: readonly Expr[], extents: Readonly<Record<string, number>>): number {
  const env = emptyEnv(Object.fromEntries(layout.axes.map((axis, i) => [axis, extents[dims[i] ?? ''] ?? 1])))
  for (const [i, axis] of layout.axes.entries()) env.values.set(axis, Number(evaluateExpr(indices[i] ?? i32(0), emptyEnv({}))))
  return Number(evaluateExpr(layout.offset, env))
}

const found = (param: TensorParam, axes: MatrixAxes): Matrices => {
  const made = matricesOf(param, axes)
  if (made === undefined) throw new Error(`${param.layout.name} has no order`)
  return made
}

const matrix: MatrixAxes = { batch: [], row: 'm', column: 'k' }

describe('one matrix', () => {
  it.each<[string, MatrixOrder, pitch: number]>([
    ['row', 'row', 33],
    ['rows16', 'row', 48],
    ['col32', 'col32', 32 * 5],
    ['col4_4r2_8c', 'col4_4r2_8c', 32 * 8],
    ['col32_2r_4r4', 'col32_2r_4r4', 32 * 32],
  ])('in %s is in the order %s', (name, order, pitch) => {
    const param = tensor(['m', 'k'], layoutOf(name, ['m', 'k']))
    const { order: actual, pitchAt } = found(param, matrix)
    expect(actual).toBe(order)
    expect(offsetAt(param, pitchAt, { m: 5, k: 33 })).toBe(pitch)
  })

  it('with contiguous columns is a transposed one of rows', () => {
    const param = tensor(['k', 'm'], layoutOf('column', ['k', 'm']))
    expect(matricesOf(param, matrix)?.order).toBe('row')
    expect(matricesOf(param, { batch: [], row: 'k', column: 'm' })).toBeUndefined()
  })
})

describe('a matrix of each head', () => {
  const dims = ['b', 's', 'h', 'd']
  const keys: MatrixAxes = { batch: ['b', 'h'], row: 's', column: 'd' }
  const values: MatrixAxes = { batch: ['b', 'h'], row: 'd', column: 's' }
  const extents = { b: 2, s: 5, h: 3, d: 33 }

  it.each<[string, MatrixAxes, MatrixOrder, next: number]>([
    ['split_heads', keys, 'row', 5 * 33],
    ['heads_rows16', keys, 'row', 5 * 48],
    ['heads_col32', keys, 'col32', 5 * 64],
    ['heads_col4_4r2_8c', keys, 'col4_4r2_8c', 8 * 64],
    ['heads_col32_2r_4r4', keys, 'col32_2r_4r4', 32 * 64],
    ['transposed_heads_rows16', values, 'row', 33 * 16],
    ['transposed_heads_col4_4r2_8c', values, 'col4_4r2_8c', 40 * 32],
    ['transposed_heads_col32_2r_4r4', values, 'col32_2r_4r4', 64 * 32],
  ])('in %s', (name, axes, order, next) => {
    const param = tensor(dims, layoutOf(name, dims))
    const made = found(param, axes)
    expect(made.order).toBe(order)
    expect(offsetAt(param, made.nextAt, extents)).toBe(next)
  })

  it.each([
    ['transposed', 'heads_col32', values],
    ['with heads before sequences', 'heads_col32', { ...keys, batch: ['h', 'b'] }],
    ['with matrices that lie between each other', 'row', keys],
  ])('%s is not one', (_, name, axes) => expect(matricesOf(tensor(dims, layoutOf(name, dims)), axes)).toBeUndefined())
})

describe('near misses are not', () => {
  const c = index('c')
  const changed = (name: string, axis: string, to: Expr): TensorParam => {
    const layout = layoutOf(name, ['r', 'c'])
    return tensor(['m', 'k'], { ...layout, offset: substitute(layout.offset, new Map([[axis, to]])) })
  }
  /** The columns of every pair exchanged, and those two of the first 32 that lie last. */
  const pairs = call('add', call('sub', c, call('mod', c, i32(2))), call('sub', i32(1), call('mod', c, i32(2))))
  const last = call('select', call('eq', c, i32(31)), i32(30), call('select', call('eq', c, i32(30)), i32(31), c))
  const names = ['col32', 'col4_4r2_8c', 'col32_2r_4r4']

  it.each(names)('%s with exchanged pairs of columns', (name) =>
    expect(matricesOf(changed(name, 'c', pairs), matrix)).toBeUndefined(),
  )
  it.each(names)('%s with two columns exchanged', (name) => expect(matricesOf(changed(name, 'c', last), matrix)).toBeUndefined())
  it.each(names)('%s with its rows two further', (name) =>
    expect(matricesOf(changed(name, 'r', call('add', index('r'), i32(2))), matrix)).toBeUndefined(),
  )
  it.each(names)('%s changed into itself is still found', (name) =>
    expect(matricesOf(changed(name, 'c', call('add', c, i32(0))), matrix)?.order).toBe(name),
  )
})
