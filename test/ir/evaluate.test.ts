/** The interpreter: a whole kernel by hand, laziness, and out-of-bounds reads. */
import { describe, expect, it } from 'vitest'
import { call, constant, f32, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr, evaluateKernel, forEachPoint } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { monoids } from '../../src/ir/monoids.js'
import { centre, load, running, tally } from './kernels.js'

const x = { data: [1, 2, 3, 4, 5, 9], shape: [2, 3] }

describe('evaluateKernel', () => {
  it('runs every statement', () => {
    const { y, mean } = evaluateKernel(centre, { x, ids: { data: [1, 0], shape: [2] } }, { m: 2, n: 3 }, { eps: 0 })
    expect(y).toEqual({ data: Float64Array.of(-2, -1, 3, -1, 0, 1), shape: [2, 3] })
    expect(mean).toEqual({ data: Float64Array.of(6, 2), shape: [2] })
  })
  it('scans a row, and a scan', () => {
    const { y, top } = evaluateKernel(running, { x, ids: { data: [1, 0], shape: [2] } }, { m: 2, n: 3 })
    expect(y?.data).toEqual(Float64Array.of(4, 9, 18, 1, 3, 6))
    expect(top?.data).toEqual(Float64Array.of(31, 10))
  })
  it('scans an empty row', () => {
    const empty = { x: { data: [], shape: [1, 0] }, ids: { data: [0], shape: [1] } }
    expect(evaluateKernel(running, empty, { m: 1, n: 0 }).top?.data).toEqual(Float64Array.of(Number.NEGATIVE_INFINITY))
  })
  it('counts the integers of each row', () => {
    const ids = { data: [0, 2, 2, -1, 1, 3], shape: [2, 3] }
    expect(evaluateKernel(tally, { ids }, { m: 2, n: 3, k: 3 }).counts?.data).toEqual(Float64Array.of(1, 0, 2, 0, 1, 0))
  })
  it('takes attributes from the kernel', () =>
    expect(evaluateKernel(centre, { x, ids: { data: [0, 0], shape: [2] } }, { m: 2, n: 3 }).y?.data[1]).toBe(0.5))
  it('does nothing for an empty index space', () =>
    expect(evaluateKernel(centre, { x, ids: { data: [], shape: [0] } }, { m: 0, n: 3 }).y?.data).toHaveLength(0))
  it('refuses a read outside a tensor', () =>
    expect(() => evaluateKernel(centre, { x, ids: { data: [2, 0], shape: [2] } }, { m: 2, n: 3 })).toThrow(
      'x[2, 0] is outside its shape (2, 3)',
    ))
})

describe('evaluateExpr', () => {
  const env = { ...emptyEnv({}), tensors: { x }, values: new Map([['i', 7]]) }
  const outside = load('x', index('i'), i32(0))
  const isFalse = constant('bool', false)
  const isOutside: Expr = call('lt', outside, f32(0))
  it('evaluates only the branch taken', () => {
    expect(evaluateExpr(call('select', isFalse, outside, f32(1)), env)).toBe(1)
    expect(() => evaluateExpr(call('select', isFalse, f32(1), outside), env)).toThrow('x[7, 0]')
  })
  it('evaluates the right of && and || only if needed', () => {
    expect(evaluateExpr(call('and', isFalse, isOutside), env)).toBe(false)
    expect(evaluateExpr(call('or', call('not', isFalse), isOutside), env)).toBe(true)
    expect(() => evaluateExpr(call('or', isFalse, isOutside), env)).toThrow('x[7, 0]')
  })
  it('folds serially', () =>
    expect(
      evaluateExpr(
        { kind: 'fold', type: 'i32', monoid: 'argmax', length: i32(3), index: 'k', value: load('x', i32(1), index('k')) },
        env,
      ),
    ).toBe(2))
})

describe('forEachPoint', () => {
  const points = (extents: readonly number[]): number[][] => {
    const seen: number[][] = []
    forEachPoint(extents, (point) => seen.push([...point]))
    return seen
  }
  it('visits in row-major order', () =>
    expect(points([2, 2])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ]))
  it('visits one point of no axes and none of an empty axis', () => {
    expect(points([])).toEqual([[]])
    expect(points([3, 0])).toEqual([])
  })
})

describe('monoids', () => {
  const values = [3, -1, 4, 4, -5, 2]
  const at = (i: number): number => values[i] ?? Number.NaN
  it.each(Object.entries(monoids))('%s scans to the reduction of each prefix of a row', (_, monoid) =>
    expect(monoid.scan(values.length, at)).toEqual(values.map((_, i) => monoid.evaluate(i + 1, at))),
  )
})
