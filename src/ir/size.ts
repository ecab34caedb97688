/**
 * Limits of the size of a kernel's expressions. Every pass walks them, some recursively and some along every path. Expressions that are
 * too deep or shared too often are therefore refused where they are written or fused, with the value and the limit.
 */
import type { Expr } from './expr.js'
import type { Kernel } from './kernel.js'
import { operands, stmtExprs, visitUp } from './walk.js'

export const limits = {
  /** Nesting depth of expressions of a body, as written. */
  nesting: 256,
  /** Expressions of a body, with inlined functions. */
  expressions: 10_000,
  /** Depth of the operations of a kernel's value. */
  depth: 512,
  /** Operations of a kernel's value, with shared ones expanded. */
  operations: 200_000,
} as const

export interface ExprSize {
  readonly depth: number
  /** Operations, shared ones counted once per use. */
  readonly operations: number
}

const leaf: ExprSize = { depth: 0, operations: 0 }

/** Size of an expression, with one visit per node. */
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

/** Reason why an expression is too large; undefined if it is not. */
export function oversize(expr: Expr): string | undefined {
  const { depth, operations } = sizeOfExpr(expr)
  if (depth > limits.depth) return `its depth is ${depth} operations, at most ${limits.depth} are allowed`
  if (operations <= limits.operations) return undefined
  const count = operations < 1e15 ? String(operations) : operations.toExponential(1)
  return `it has ${count} operations with shared ones expanded, at most ${limits.operations} are allowed`
}

/** Reason for the first value of a kernel that is too large; undefined if none is. */
export const oversizeKernel = ({ body }: Pick<Kernel, 'body'>): string | undefined =>
  body
    .flatMap(stmtExprs)
    .map(oversize)
    .find((reason) => reason !== undefined)
