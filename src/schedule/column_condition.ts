/**
 * Which rows count in a reduction of columns: `sum(r < m: id[r] === k ? x[r, c] : 0)` counts some rows, the same in every column, and need not
 * load the others. Asked where a column program is made.
 */
import type { Expr } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import { contains, sameExpr, usesIndex } from './rewrite.js'

/** What leaves a reduction as it is. A place is none: it wins over places behind it. */
const nothing: Partial<Record<StmtOf<'reduce'>['monoid'], number>> = {
  sum: 0,
  max: Number.NEGATIVE_INFINITY,
  min: Number.POSITIVE_INFINITY,
}

/** An element as what counts under a condition, and nothing otherwise. */
export function chosen({ monoid }: StmtOf<'reduce'>, value: Expr): { readonly when: Expr; readonly value: Expr } | undefined {
  if (value.kind !== 'call' || value.fn !== 'select') return undefined
  const [when, counted, other] = value.args
  if (when === undefined || counted === undefined || other?.kind !== 'const' || other.value !== nothing[monoid]) return undefined
  return { when, value: counted }
}

/** The condition under which a row counts in every reduction, where it depends on the row alone: a scatter that adds is of this form. */
export function conditionOf(
  reductions: readonly { readonly s: StmtOf<'reduce'>; readonly value: Expr }[],
  column: string,
  row: string,
): Expr | undefined {
  const [first, ...others] = reductions.map(({ s, value }) => chosen(s, value)?.when)
  if (first === undefined || !others.every((when) => when !== undefined && sameExpr(when, first))) return undefined
  const isOfRow = usesIndex(first, row) && !usesIndex(first, column) && !contains(first, ({ kind }) => kind === 'local')
  return isOfRow ? first : undefined
}
