/** Reductions by the language's monoids and by those of authors, which column programs and programs of totals schedule alike. */
import { constructOf } from '../../ir/constructs/index.js'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Stmt, StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'

/** Both combine elements in any order: the frontend refuses a reduction by a monoid that samples show not to be commutative. */
export type Reduction = StmtOf<'reduce'> | StmtOf<'merge'>

/** A reduction as a program walks it. */
export interface Reduced {
  readonly stmt: Reduction
  /** Of an element, one for each field, of which a reduction by the language's own has one; chunks that are loaded are rows in them. */
  readonly values: readonly Expr[]
}

export const isReduction = (s: Stmt): s is Reduction => s.kind === 'reduce' || s.kind === 'merge'

/** Scalars that a reduction makes. */
export const resultsOf = (stmt: Reduction): readonly { readonly name: string; readonly type: ScalarType }[] =>
  constructOf(stmt).defines(stmt)

/** The values of an element, as the statement has them. */
export const valuesOf = (stmt: Reduction): readonly Expr[] => constructOf(stmt).elementExprs(stmt)

/** A reduction in words. */
export function printReduced({ stmt, values }: Reduced): string {
  const made = values.map(printExpr).join(', ')
  return stmt.kind === 'merge' ? `(${stmt.names.join(', ')}) merge (${made})` : `${stmt.name} = ${stmt.monoid} of ${made}`
}
