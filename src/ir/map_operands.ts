/** Direct operands of expressions, on which visiting and rewriting (src/ir/walk.ts) are built. */
import type { Expr } from './expr.js'

/** Direct operands of an expression, in evaluation order. */
export function operands(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'element':
      return [expr.index]
    case 'load':
      return expr.indices
    case 'call':
      return expr.args
    case 'fold':
      return [expr.length, expr.value]
    default:
      return []
  }
}

/** The expression with its direct operands replaced; the same object if none changes. */
export function mapOperands(expr: Expr, map: (operand: Expr) => Expr): Expr {
  const before = operands(expr)
  const after = before.map(map)
  if (after.every((operand, i) => operand === before[i])) return expr
  const [first, second] = after
  switch (expr.kind) {
    case 'element':
      return { ...expr, index: first ?? expr.index }
    case 'load':
      return { ...expr, indices: after }
    case 'call':
      return { ...expr, args: after }
    case 'fold':
      return { ...expr, length: first ?? expr.length, value: second ?? expr.value }
    default:
      return expr
  }
}
