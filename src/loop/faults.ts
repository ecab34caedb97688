/** Detects expressions that need a mask: those that may fault for elements beyond a row, or where the condition of a store does not hold. */
import type { Expr } from '../ir/expr.js'
import { type Pass, passValues, statementsOf } from '../schedule/normalise/passes.js'
import { contains } from '../schedule/normalise/rewrite.js'
import { mayDivideByZero } from '../schedule/normalise/simplify.js'

/** True if an evaluation that the body would not make could read out of bounds (of `shared` rows too) or divide by zero. */
export const faults = (e: Expr, shared: ReadonlySet<string> = new Set()): boolean =>
  contains(e, (node) => node.kind === 'load' || (node.kind === 'element' && shared.has(node.row)) || mayDivideByZero(node))

/** True if computing an element that does not exist could read out of bounds or divide by zero. */
export function mayFault(pass: Pass, shared?: ReadonlySet<string>): boolean {
  const values = pass.rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : []))
  return (
    statementsOf(pass, 'loopStore').some((s) => s.run === undefined) ||
    [...values, ...passValues(pass)].some((value) => faults(value, shared))
  )
}
