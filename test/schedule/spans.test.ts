/** Loads beside the place of an element: those that a span may hold, and look-alikes whose places are not proven to lie inside of their tensor. */
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index } from '../../src/ir/build.js'
import type { Expr, ExprOf } from '../../src/ir/expr.js'
import { linearOf } from '../../src/ir/linear.js'
import {
  conjuncts,
  follows,
  isNotNegative,
  knownOfAxes,
  knownWith,
  withoutClamps,
} from '../../src/schedule/windows/inequalities.js'
import { besideOf } from '../../src/schedule/windows/spans.js'
import { axis, kernel, tensor } from './fixtures.js'

const [i, j, g] = [index('i'), index('j'), index('g')]
const plus = (e: Expr, by: number): Expr => call('add', e, i32(by))
const of = {
  ...kernel('windows', 'm n k', [axis('i', 'm'), axis('g', 'm/4')], [tensor('x', 'in', 'm n'), tensor('z', 'in', 'm k')], []),
  computed: { 'm/4': call('idiv', call('add', dim('m'), i32(3)), i32(4)) },
}
const loop = { index: 'j', length: dim('n') }
const load = (tensorName: string, ...indices: readonly Expr[]): ExprOf<'load'> => ({
  kind: 'load',
  type: 'f32',
  tensor: tensorName,
  indices,
})
const beside = (at: ExprOf<'load'>, ...path: readonly Expr[]) => besideOf(at, path, loop, { kernel: of, fixed: {} })
const above = call('ge', plus(i, -1), i32(0))
const left = call('ge', plus(j, -1), i32(0))

describe('a span', () => {
  it('holds elements before and after a place, whose conditions along the row it replaces', () => {
    expect(beside(load('x', i, plus(j, -1)), left)).toMatchObject({ shift: -1, guards: [] })
    expect(beside(load('x', i, plus(j, 2)), call('lt', plus(j, 2), dim('n')))).toMatchObject({ shift: 2, guards: [] })
    expect(beside(load('x', plus(i, -1), plus(j, -1)), call('and', above, left))).toMatchObject({ shift: -1, guards: [above] })
    expect(beside(load('x', call('mul', g, i32(4)), j))).toMatchObject({ shift: 0 })
  })

  it.each([
    ['a row that no condition proves to exist', load('x', plus(i, -1), plus(j, -1)), [left]],
    ['a row after the last', load('x', plus(call('mul', g, i32(4)), 1), j), []],
    ['a row of another length', load('z', i, plus(j, -1)), [left]],
    ['places of a condition on row and column', load('x', i, plus(j, -1)), [call('lt', i, j)]],
    ['every other place', load('x', i, call('mul', j, i32(2))), []],
    ['a row by the place', load('x', call('sub', i, j), j), [call('ge', call('sub', i, j), i32(0))]],
    ['a condition that is loaded', load('x', i, plus(j, -1)), [left, call('lt', load('x', i, i32(0)), load('x', i, i32(1)))]],
  ] as const)('does not hold %s', (_, at, path) => {
    expect(beside(at, ...path)).toBeUndefined()
  })
})

describe('inequalities', () => {
  it('do not depend on their spelling', () => {
    const known = knownWith(new Map(), [call('not', call('or', call('lt', j, i32(1)), call('gt', j, i32(9))))])
    expect(follows(call('gt', j, i32(0)), known)).toBe(true)
    expect(follows(call('le', plus(j, -9), i32(0)), known)).toBe(true)
    expect(follows(call('gt', j, i32(1)), known)).toBe(false)
    expect(follows(call('lt', j, i32(9)), known)).toBe(false)
    expect(conjuncts(call('not', call('and', left, above)))).toHaveLength(1)
  })

  it('of the axes hold everywhere', () => {
    const known = knownOfAxes(of, {})
    expect(follows(call('lt', i, dim('m')), known)).toBe(true)
    expect(follows(call('lt', call('mul', g, i32(4)), dim('m')), known)).toBe(true)
    expect(follows(call('lt', plus(call('mul', g, i32(4)), 1), dim('m')), known)).toBe(false)
    expect(isNotNegative(linearOf(plus(i, -1)), known)).toBe(false)
  })

  it('remove clamps where they hold, and no others', () => {
    const clamped = load('x', i, call('maximum', plus(j, -1), i32(0)))
    const guarded = (condition: Expr): Expr => call('select', condition, clamped, { kind: 'const', type: 'f32', value: 0 })
    expect(withoutClamps(guarded(left), new Map())).toMatchObject({ args: [left, { indices: [i, plus(j, -1)] }, {}] })
    const later = call('ge', j, i32(0))
    expect(withoutClamps(guarded(later), new Map())).toEqual(guarded(later))
  })
})
