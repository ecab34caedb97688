/** Renaming the loops inside of expressions changes no value, regardless of their names before. */
import { describe, expect, it } from 'vitest'
import { call, i32, index, toFloat } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { renameLoops } from '../../src/ir/loop_names.js'
import { printExpr } from '../../src/ir/print.js'

const fold = (name: string, length: number, value: Expr): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length: i32(length),
  index: name,
  value,
})

describe('renameFolds', () => {
  // A mean inside of a variance, and the mean again next to it: the names are those of renaming, in another order.
  const inner = (name: string) => fold(name, 3, toFloat(index(name)))
  const nested = (outer: string, within: string) =>
    call('sub', inner(within), fold(outer, 4, call('mul', toFloat(index(outer)), inner(within))))

  it.each([
    ['fold1', 'fold2'],
    ['fold2', 'fold1'],
    ['fold3', 'fold2'],
    ['c', 'c'],
  ])('preserves the value of %s around %s', (outer, within) => {
    const renamed = renameLoops(nested(outer, within))
    expect(evaluateExpr(renamed, emptyEnv({}))).toBe(3 - 6 * 3)
    expect(printExpr(renameLoops(renamed))).toBe(printExpr(renamed))
  })
})

describe('repeated folds', () => {
  const row = (at: Expr): Expr => ({ kind: 'element', type: 'f32', row: 'row', index: at })

  it('have the values of their names at that time, and of other environments', () => {
    const scaled = fold('k', 4, call('mul', toFloat(index('k')), toFloat(index('m'))))
    const environments = [emptyEnv({}), emptyEnv({})]
    for (const m of [2, 2, 5, 2])
      for (const [n, env] of environments.entries()) {
        env.values.set('m', m + n)
        expect(evaluateExpr(scaled, env)).toBe(6 * (m + n))
      }
  })

  it('are recomputed for rows, which change under the same name', () => {
    const env = emptyEnv({})
    const total = fold('k', 2, row(index('k')))
    for (const values of [
      [1, 2],
      [3, 4],
    ]) {
      env.rows.set('row', values)
      expect(evaluateExpr(total, env)).toBe((values[0] ?? 0) + (values[1] ?? 0))
    }
  })
})
