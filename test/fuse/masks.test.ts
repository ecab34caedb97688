/** Masks separated from scores: the remaining score hides the same keys, and bounds of keys skip whole tiles. */
import { describe, expect, it } from 'vitest'
import { withMasksInfinite } from '../../src/fuse/attention/exponent.js'
import { type Masked, rangeOf, takeMasks } from '../../src/fuse/attention/masks.js'
import { hiddenBelow } from '../../src/ir/attention_reference.js'
import { call, f32, i32, index, local } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { printExpr } from '../../src/ir/print.js'

const [i, j] = [index('i'), index('j')]
const raw = local('raw')
const low = f32(-1e30)
const keys = 9

const future = call('gt', j, i)
const past = call('le', j, i)
const near = call('lt', call('sub', i, j), i32(3))
const within = (fn: 'lt' | 'le', far: number): Expr => call(fn, call('abs', call('sub', i, j)), i32(far))
const prompt = call('lt', j, i32(4))
const even = call('eq', call('mod', j, i32(2)), i32(0))
const third = call('eq', call('mod', j, i32(3)), i32(0))
const keep = (condition: Expr): Expr => call('select', condition, raw, low)
const hide = (condition: Expr): Expr => call('select', condition, low, raw)
const add = (condition: Expr, holds = true): Expr =>
  call('add', raw, holds ? call('select', condition, f32(0), low) : call('select', condition, low, f32(0)))

/** True if query `at` sees key `to`, by a score and by its remainder. */
function sees(score: Expr, at: number, to: number): boolean {
  const env = emptyEnv({})
  env.values.set('i', at).set('j', to).set('raw', 0.5)
  return Number(evaluateExpr(score, env)) > hiddenBelow
}

function inRange(masked: Masked, at: number, to: number): boolean {
  const env = emptyEnv({})
  env.values.set('i', at)
  const { lower, upper } = rangeOf(masked, i32(keys))
  return Number(evaluateExpr(lower, env)) <= to && to < Number(evaluateExpr(upper, env))
}

const bounds = (masked: Masked): readonly [string, string] => {
  const { lower, upper } = rangeOf(masked, local('keys', 'i32'))
  return [printExpr(lower), printExpr(upper)]
}

describe('a mask', () => {
  it.each<[string, Expr, string, string, boolean]>([
    ['keeps the past', keep(past), '0', 'i + 1', true],
    ['hides the future', hide(future), '0', 'i + 1', true],
    ['keeps what is not the future', keep(call('not', future)), '0', 'i + 1', true],
    ['hides what is not the past', hide(call('not', past)), '0', 'i + 1', true],
    ['keeps what is not in the future and far', keep(call('not', call('or', future, call('not', near)))), 'i - 2', 'i + 1', true],
    ['is added', add(past), '0', 'i + 1', true],
    ['is added where it hides', add(future, false), '0', 'i + 1', true],
    ['is two, one behind the other', call('select', near, keep(past), low), 'i - 2', 'i + 1', true],
    ['is two that are added', call('add', add(past), call('select', near, f32(0), low)), 'i - 2', 'i + 1', true],
    ['is a window on both sides', keep(within('lt', 3)), 'i - 2', 'i + 3', true],
    ['is a window with its ends', keep(within('le', 3)), 'i - 3', 'i + 4', true],
    ['is the past or a prompt', keep(call('or', past, prompt)), '0', 'maximum(i + 1, 4)', true],
    ['says the key last', keep(call('ge', i, j)), '0', 'i + 1', true],
    ['says more than a range', keep(call('and', past, even)), '0', 'i + 1', false],
    ['says more than a range, twice', keep(call('and', past, call('and', even, third))), '0', 'i + 1', false],
    ['is added with a number', call('add', raw, call('select', past, f32(1), low)), '0', 'i + 1', false],
    ['is not a range', keep(even), '0', 'keys', false],
    ['hides no range', hide(call('and', past, even)), '0', 'keys', false],
    ['is a range that falls', keep(call('lt', call('add', i, j), i32(5))), '0', 'keys', false],
    ['is on one side or the other', keep(call('or', past, call('gt', j, i32(6)))), '0', 'keys', false],
    ['reads its key twice', keep(call('lt', call('mul', j, i32(2)), i)), '0', 'keys', false],
  ])('that %s', (_, score, lower, upper, whole) => {
    const masked = takeMasks(score)
    expect(bounds(masked)).toEqual([lower, upper])
    expect(printExpr(masked.score) === 'raw').toBe(whole)
    for (let at = 0; at < keys; at++)
      for (let to = 0; to < keys; to++)
        expect(inRange(masked, at, to) && sees(masked.score, at, to), `${at} sees ${to}`).toBe(sees(score, at, to))
  })

  it.each<[string, Expr]>([
    ['a choice between scores', call('select', past, raw, call('mul', raw, f32(2)))],
    ['a choice of a number that is not a mask', call('select', past, raw, f32(-100))],
    ['a sum', call('add', raw, f32(1))],
    ['a product', call('mul', keep(past), f32(2))],
  ])('is not taken off %s', (_, score) => {
    expect(takeMasks(score)).toEqual({ score, lower: [], upper: [] })
  })
})

describe('conditions that hide a key', () => {
  it('is -Infinity, however low the number was that an author wrote, and no other number is', () => {
    const kept = call('add', call('mul', raw, f32(-3)), f32(0.5))
    expect(printExpr(withMasksInfinite(kept))).toBe(printExpr(kept))
    expect(printExpr(withMasksInfinite(hide(past)))).toBe(printExpr(call('select', past, f32(Number.NEGATIVE_INFINITY), raw)))
    // An integer as low is a position.
    const place = call('select', past, i32(-2_000_000_000), i)
    expect(printExpr(withMasksInfinite(place))).toBe(printExpr(place))
  })
})
