/** Conditions that are kept in memory, in `bool` tensors and in rows: the IR has integers there, 1 where they hold and 0 where not. */
import { call, i32 } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'

/** A condition as the integer that is kept of it. */
export const asInteger = (condition: Expr): Expr => call('select', condition, i32(1), i32(0))

/** The condition that an integer was kept of; any other than 0 holds. */
export const asCondition = (kept: Expr): Expr => call('ne', kept, i32(0))

const isZero = (expr: Expr | undefined): boolean => expr?.kind === 'const' && expr.value === 0

/** A condition as a `bool` output stores it. Elements of a tensor `kept`, whose place the output takes, stay what they are. */
export function storedCondition(condition: Expr, kept?: string): Expr {
  if (condition.kind !== 'call') return asInteger(condition)
  const [a, b, c] = condition.args
  if (condition.fn === 'ne' && a?.kind === 'load' && a.tensor === kept && isZero(b)) return a
  if (condition.fn === 'select' && a !== undefined && b !== undefined && c !== undefined)
    return call('select', a, storedCondition(b, kept), storedCondition(c, kept))
  return asInteger(condition)
}
