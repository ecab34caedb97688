/**
 * How large the expressions of a kernel may be. Every pass goes through them, some by functions that call themselves and some along
 * every path, so that what is deep or shared many times over is refused where it is written or fused, with the value and the limit.
 */
import type { Expr } from './expr.js'
import type { Kernel } from './kernel.js'
import { operands, stmtExprs, visitUp } from './walk.js'

export const limits = {
  /** Expressions of a body inside one another, as they are written. */
  nesting: 256,
  /** Expressions of a body, the functions it calls written out. */
  expressions: 10_000,
  /** Operations of a kernel's value on top of one another. */
  depth: 512,
  /** Operations of a kernel's value where shared ones are written out. */
  operations: 200_000,
} as const

export interface ExprSize {
  readonly depth: number
  /** Operations, shared ones counted wherever they are used. */
  readonly operations: number
}

const leaf: ExprSize = { depth: 0, operations: 0 }

/** The size of an expression, in one visit a node. */
export function sizeOfExpr(expr: Expr): ExprSize {
  const sizes = new Map<Expr, ExprSize>()
  visitUp(expr, (node) => {
    let [depth, operations] = [0, 1]
    for (const operand of operands(node)) {
      const size = sizes.get(operand) ?? leaf
      depth = Math.max(depth, size.depth)
      operations += size.operations
    }
    sizes.set(node, { depth: depth + 1, operations })
  })
  return sizes.get(expr) ?? leaf
}

/** Why an expression is too large; undefined where it is not. */
export function oversize(expr: Expr): string | undefined {
  const { depth, operations } = sizeOfExpr(expr)
  if (depth > limits.depth) return `${depth} operations are on top of one another, at most ${limits.depth} may be`
  if (operations <= limits.operations) return undefined
  const count = operations < 1e15 ? String(operations) : operations.toExponential(1)
  return `it is ${count} operations where shared ones are written out, at most ${limits.operations} may be`
}

/** Why the first value of a kernel that is too large is so. */
export const oversizeKernel = ({ body }: Pick<Kernel, 'body'>): string | undefined =>
  body
    .flatMap(stmtExprs)
    .map(oversize)
    .find((reason) => reason !== undefined)
