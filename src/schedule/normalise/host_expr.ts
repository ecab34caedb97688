/** Expressions that the host can evaluate before a launch: over dimensions and attributes alone. */
import type { Expr } from '../../ir/expr.js'
import { intrinsic } from '../../ir/intrinsics.js'

/** True if an expression is integer arithmetic over dimensions and attributes. */
export const isHostExpr = (e: Expr): boolean => {
  if (e.kind === 'const' || e.kind === 'dim' || e.kind === 'attr') return true
  return e.kind === 'call' && e.type === 'i32' && intrinsic(e.fn).symbol !== undefined && e.args.every(isHostExpr)
}
