/** Whether the elements beyond a row must be left out of a pass. Asked once a pass, before it is written. */
import type { Expr } from '../ir/expr.js'
import { type Pass, passValues } from '../schedule/passes.js'
import { contains } from '../schedule/rewrite.js'
import { mayDivideByZero } from '../schedule/simplify.js'

/** True when computing an element that does not exist could read out of bounds or divide by zero. */
export function mayFault(pass: Pass): boolean {
  const values = pass.rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : []))
  const faults = (e: Expr): boolean => contains(e, (node) => node.kind === 'load' || mayDivideByZero(node))
  return pass.stores.some((s) => s.run === undefined) || [...values, ...passValues(pass)].some(faults)
}
