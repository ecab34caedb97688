/** Conditions stored in memory, in `bool` tensors and in rows: the IR stores integers there, 1 for true and 0 for false. */
import { call, i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'

/** A condition as its stored integer. */
export const asInteger = (condition: Expr): Expr => call('select', condition, i32(1), i32(0))

/** The condition of a stored integer: true for any but 0. */
export const asCondition = (stored: Expr): Expr => call('ne', stored, i32(0))

const isZero = (expr: Expr | undefined): boolean => expr?.kind === 'const' && expr.value === 0

/** A condition as a `bool` output stores it. Elements of the tensor `updated`, which the output replaces in place, stay as they are. */
export function storedCondition(condition: Expr, updated?: string): Expr {
  if (condition.kind !== 'call') return asInteger(condition)
  const [a, b, c] = condition.args
  if (condition.fn === 'ne' && a?.kind === 'load' && a.tensor === updated && isZero(b)) return a
  if (condition.fn === 'select' && a !== undefined && b !== undefined && c !== undefined)
    return call('select', a, storedCondition(b, updated), storedCondition(c, updated))
  return asInteger(condition)
}
