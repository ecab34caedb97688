/** Expressions compiled to JavaScript agree with the interpreter of expressions, for each kind and every intrinsic. */
import { describe, expect, it } from 'vitest'
import { call, constant, f32, i32, index, local } from '../../src/ir/build.js'
import type { ScalarType } from '../../src/ir/dtype.js'
import { type Env, emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { type IntrinsicName, intrinsic, intrinsics, isIntrinsicName } from '../../src/ir/intrinsics.js'
import { emptyKernel, type Kernel } from '../../src/ir/kernel.js'
import { monoids } from '../../src/ir/monoids.js'
import { runnable } from '../../src/ir/runnable.js'
import { load } from './kernels.js'

const x = { data: [1, -2, 3.5, 4, 5, 9], shape: [2, 3] }
const bound = { tensors: { x }, dims: { n: 3 }, attrs: { eps: 0.25 } }
const env: Env = { ...emptyEnv(bound.dims), ...bound }

const kernelOf = (...values: readonly Expr[]): Kernel => ({
  ...emptyKernel,
  body: values.map((value, i) => ({ kind: 'let', name: `(value ${i})`, type: value.type, value })),
})
/** Results of both evaluations. */
function both(value: Expr): readonly unknown[] {
  const { reads } = runnable(kernelOf(value))(bound)
  return [reads.value(value), evaluateExpr(value, env)]
}
function same(value: Expr): unknown {
  const [run, interpreted] = both(value)
  expect(run).toBe(interpreted)
  return run
}

const samples: Readonly<Record<ScalarType, readonly (number | boolean)[]>> = {
  bool: [true, false],
  i32: [0, 1, -1, 2, 7, -13, 2 ** 31 - 1, -(2 ** 31)],
  f32: [0, -0, 1, -1, 0.5, 2.5, -3.25, 1e30, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
}
const tuples = (params: readonly ScalarType[]): readonly (readonly Expr[])[] =>
  params.reduce<readonly (readonly Expr[])[]>(
    (before, type) => before.flatMap((some) => samples[type].map((value) => [...some, constant(type, value)])),
    [[]],
  )

describe('a kernel as JavaScript', () => {
  it.each(Object.keys(intrinsics).filter(isIntrinsicName))('%s means the same', (fn: IntrinsicName) => {
    for (const { params, result } of intrinsic(fn).signatures)
      for (const args of tuples(params).slice(0, 700)) same({ kind: 'call', type: result, fn, args })
  })
  const each = load('x', i32(1), index('k'))
  it.each(Object.keys(monoids) as (keyof typeof monoids)[])('folds by %s', (monoid) => {
    const ofLength = (length: Expr): Expr => ({ kind: 'fold', type: 'f32', monoid, length, index: 'k', value: each })
    for (const length of [i32(0), i32(1), { kind: 'dim', type: 'i32', name: 'n' } as const]) same(ofLength(length))
  })
  it('reads attributes, and evaluates conditions', () => {
    expect(same(call('mul', { kind: 'attr', type: 'f32', name: 'eps' }, f32(8)))).toBe(2)
    const isLess = call('select', call('lt', each, f32(5)), i32(1), i32(0))
    expect(same({ kind: 'fold', type: 'i32', monoid: 'sum', length: i32(3), index: 'k', value: isLess })).toBe(1)
  })
  it('accepts names from outside of the kernel', () => {
    const value = local('a"]; throw 1 //')
    const { reads } = runnable(kernelOf(value))(bound)
    reads.setLocal('a"]; throw 1 //', 5)
    expect(reads.value(value)).toBe(5)
  })
  it('computes shared values where they are read, and names large ones', () => {
    expect(same({ kind: 'fold', type: 'f32', monoid: 'sum', length: i32(3), index: 'k', value: call('add', each, each) })).toBe(
      36,
    )
    let sum: Expr = load('x', i32(0), i32(0))
    for (let i = 0; i < 1000; i++) sum = call('add', sum, f32(1))
    expect(same(sum)).toBe(1001)
    // Each step reads the one before twice and takes one of them.
    let shared: Expr = load('x', i32(0), i32(0))
    for (let i = 0; i < 60; i++) shared = call('select', constant('bool', i % 2 === 0), shared, call('add', shared, f32(1)))
    expect(same(shared)).toBe(31)
  })
  it('computes a fold once for the names that it reads', () => {
    const sum = (name: string, value: Expr): Expr => ({
      kind: 'fold',
      type: 'f32',
      monoid: 'sum',
      length: i32(3),
      index: name,
      value,
    })
    const mean = sum('i', load('x', local('m'), index('i')))
    const value = sum(
      'k',
      call('mul', load('x', local('m'), index('k')), sum('j', call('sub', load('x', i32(1), index('j')), mean))),
    )
    let count = 0
    const stray = (number: number): number => {
      count++
      return number
    }
    const { reads } = runnable(kernelOf(value), 'strayed')({ ...bound, stray })
    const at = (m: number): readonly unknown[] => {
      reads.setLocal('m', m)
      count = 0
      return [reads.value(value), count]
    }
    expect(at(0)).toEqual([2.5 * (18 - 7.5), 13])
    expect(at(1)).toEqual([18 * (18 - 54), 13])
    expect(at(0)).toEqual([2.5 * (18 - 7.5), 13])
  })
  it.each([
    ['beyond the end', load('x', i32(2), i32(0)), 'x[2, 0] is outside its shape (2, 3)'],
    ['before the start', load('x', i32(0), i32(-1)), 'x[0, -1] is outside its shape (2, 3)'],
    ['between elements', load('x', i32(0), constant('i32', 0.5)), 'x[0, 0.5] is outside its shape (2, 3)'],
    ['nowhere', load('x', i32(0), constant('i32', Number.NaN)), 'x[0, NaN] is outside its shape (2, 3)'],
  ])('refuses a read %s', (_, value, message) => {
    const { reads } = runnable(kernelOf(value))(bound)
    expect(() => reads.value(value)).toThrow(message)
    expect(() => evaluateExpr(value, env)).toThrow(message)
  })
  it('refuses a missing tensor or another rank only when it is read', () => {
    const other: Expr = call('select', constant('bool', true), f32(1), load('y', i32(0)))
    expect(runnable(kernelOf(other))(bound).reads.value(other)).toBe(1)
    const missing = load('y', i32(0))
    expect(() => runnable(kernelOf(missing))(bound).reads.value(missing)).toThrow('tensor y has no value')
    const flat = load('x', i32(0))
    expect(() => runnable(kernelOf(flat))(bound).reads.value(flat)).toThrow('tensor x has 2 dimensions, not 1')
  })
  it('has NaN if data is short', () => {
    const value = load('x', i32(1), i32(2))
    const short = { ...bound, tensors: { x: { data: [1], shape: [2, 3] } } }
    expect(runnable(kernelOf(value))(short).reads.value(value)).toBeNaN()
  })
})
