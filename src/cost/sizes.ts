/** Sizes for which a kernel is priced, and the values of extents at them. */
import { emptyEnv, evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { visit } from '../ir/walk.js'

type Numbers = Readonly<Record<string, number>>

/** Extents of dimensions and values of attributes, by the kernel's names. */
export interface Sizes {
  readonly dims: Numbers
  readonly attrs: Numbers
}

/** Value of an expression over dimensions and attributes; undefined for one that depends on data. */
export function numberAt(expr: Expr, { dims, attrs }: Sizes): number | undefined {
  let known = true
  visit(expr, (node) => {
    if (node.kind === 'dim' && dims[node.name] === undefined) known = false
    if (node.kind !== 'const' && node.kind !== 'dim' && node.kind !== 'attr' && node.kind !== 'call') known = false
  })
  return known ? Number(evaluateExpr(expr, { ...emptyEnv(dims), attrs })) : undefined
}

/** Value of a length; the maximum for a length that depends on data. */
export const lengthOf = (length: Expr, sizes: Sizes): number => numberAt(length, sizes) ?? Number.POSITIVE_INFINITY
