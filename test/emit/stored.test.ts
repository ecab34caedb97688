/** Operations that a store to int8 performs itself are removed before it, and no others. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { beforeStore } from '../../src/emit/print/rounding.js'
import { call, f32, local } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'

const [a, b] = [local('a'), local('b')]
const rounded = (x: Expr): Expr => call('maximum', call('minimum', call('round', x), f32(127)), f32(-127))
const choose = (x: Expr, y: Expr): Expr => call('select', call('lt', a, f32(0)), x, y)

describe('before a store to int8', () => {
  it.each<[string, Expr, Expr]>([
    ['rounding and saturating', rounded(call('mul', a, b)), call('mul', a, b)],
    ['saturating alone', call('minimum', a, f32(127)), a],
    ['rounding in both branches', choose(rounded(a), rounded(b)), choose(a, b)],
    ['rounding in one branch', choose(rounded(a), f32(0)), choose(a, f32(0))],
  ])('drops %s', (_, value, left) => expect(beforeStore(value, 'i8')).toEqual(left))

  it.each<[string, Expr]>([
    ['rounding of an operand', call('mul', rounded(a), b)],
    ['rounding below a sum', call('add', call('round', a), f32(1))],
    ['another bound', call('minimum', a, f32(126))],
    ['a lower bound where an upper one stands', call('minimum', a, f32(-127))],
    ['a condition that rounds', call('select', call('lt', call('round', a), f32(0)), a, b)],
  ])('keeps %s', (_, value) => expect(beforeStore(value, 'i8')).toEqual(value))

  it.each(['f32', 'f16', 'bf16', 'i32'] as const)('keeps every operation for %s', (dtype) =>
    expect(beforeStore(rounded(a), dtype)).toEqual(rounded(a)),
  )
})

/** The value of an expression after storage as int8. */
const stored = (e: Expr, at: readonly [number, number]): number => {
  const values = new Map([
    ['a', at[0]],
    ['b', at[1]],
  ])
  const evaluate = (expr: Expr): number => Number(evaluateExpr(expr, { ...emptyEnv({}), values }))
  return evaluate(rounded(e))
}
const { tree } = fc.letrec<{ tree: Expr }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    fc.constantFrom(a, b, f32(127), f32(-127), f32(0.5)),
    fc
      .tuple(fc.constantFrom('minimum', 'maximum', 'add', 'mul' as const), tie('tree'), tie('tree'))
      .map(([fn, x, y]) => call(fn as 'add', x, y)),
    tie('tree').map((x) => call('round', x)),
    tie('tree').map((x) => rounded(x)),
    fc.tuple(tie('tree'), tie('tree')).map(([x, y]) => choose(x, y)),
  ),
}))
const number = fc.double({ min: -300, max: 300, noNaN: true })

it('never changes the stored value', () => {
  fc.assert(
    fc.property(tree, number, number, (e, x, y) => stored(beforeStore(e, 'i8'), [x, y]) === stored(e, [x, y])),
    { numRuns: 2000, seed: 3 },
  )
})

it('and dropping rounding anywhere would', () => {
  const anywhere = (e: Expr): Expr =>
    e.kind !== 'call' ? e : e.fn === 'round' ? anywhere(e.args[0] ?? e) : { ...e, args: e.args.map(anywhere) }
  const e = call('mul', rounded(a), b)
  expect(stored(anywhere(e), [0.4, 100])).not.toBe(stored(e, [0.4, 100]))
})
