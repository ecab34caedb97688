/** What must not be computed where the body does not: elements beyond a row, values of stores whose condition does not hold. */
import type { Expr } from '../ir/expr.js'
import { type Pass, passValues, statementsOf } from '../schedule/passes.js'
import { contains } from '../schedule/rewrite.js'
import { mayDivideByZero } from '../schedule/simplify.js'

/** True when computing a value where its body does not could read out of bounds (of `shared` rows too) or divide by zero. */
export const faults = (e: Expr, shared: ReadonlyMap<string, unknown> = new Map()): boolean =>
  contains(e, (node) => node.kind === 'load' || (node.kind === 'element' && shared.has(node.row)) || mayDivideByZero(node))

/** True when computing an element that does not exist could read out of bounds or divide by zero. */
export function mayFault(pass: Pass, shared?: ReadonlyMap<string, unknown>): boolean {
  const values = pass.rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : []))
  return (
    statementsOf(pass, 'loopStore').some((s) => s.run === undefined) ||
    [...values, ...passValues(pass)].some((value) => faults(value, shared))
  )
}
