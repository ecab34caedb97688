/** Compiled integer expressions agree with the evaluator, for every kind of expression. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { integerFunction } from '../../src/ir/integer_function.js'

const slots = { index: new Map([['c', 0]]), dim: new Map([['c', 1]]) }

const { tree } = fc.letrec<{ tree: Expr; test: Expr }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    fc.constantFrom<Expr>(index('c'), dim('c'), i32(1), i32(3), i32(32)),
    fc
      .tuple(fc.constantFrom('add', 'sub', 'mul', 'idiv', 'mod', 'bitAnd', 'shiftRight' as const), tie('tree'), tie('tree'))
      .map(([fn, a, b]) => call(fn as 'add', a, b)),
    tie('tree').map((a) => call('neg', a)),
    fc.tuple(tie('test'), tie('tree'), tie('tree')).map(([t, a, b]) => call('select', t, a, b)),
  ),
  test: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.tuple(fc.constantFrom('lt', 'le', 'eq' as const), tie('tree'), tie('tree')).map(([fn, a, b]) => call(fn as 'lt', a, b)),
    tie('test').map((t) => call('not', t)),
    fc.tuple(fc.constantFrom('and', 'or' as const), tie('test'), tie('test')).map(([fn, a, b]) => call(fn as 'and', a, b)),
  ),
}))

describe('an integer function', () => {
  it('equals the evaluator, with choices and one operand or three', () => {
    fc.assert(
      fc.property(tree, fc.nat(99), fc.integer({ min: 1, max: 99 }), (e, at, extent) => {
        const expected = evaluateExpr(e, { ...emptyEnv({ c: extent }), values: new Map([['c', at]]) })
        return Object.is(integerFunction(e, slots)([at, extent]) + 0, Number(expected) + 0)
      }),
      { numRuns: 1000, seed: 5 },
    )
  })

  it('distinguishes an index and a dimension of one name', () => {
    const e = call('sub', dim('c'), index('c'))
    expect(integerFunction(e, slots)([3, 10])).toBe(7)
    expect(integerFunction(e, { index: slots.dim, dim: slots.index })([3, 10])).toBe(-7)
  })

  it.each<[string, Expr, string]>([
    ['a name without a slot', index('r'), 'r is not a variable of the expression'],
    ['a local', local('x'), 'reads local'],
    ['a load', { kind: 'load', type: 'i32', tensor: 'x', indices: [] }, 'reads load'],
  ])('refuses %s', (_, e, words) =>
    expect(() => integerFunction(call('add', e, e.type === 'f32' ? f32(1) : i32(1)), slots)).toThrow(words),
  )
})
