/**
 * Rows that a reduction of columns counts: `sum(r < m: id[r] === k ? x[r, c] : 0)` counts some rows, the same in every column, and need not load
 * the others. Runs when a column program is made.
 */
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { contains, sameExpr, usesIndex } from '../normalise/rewrite.js'
import type { Reduced } from './reduction.js'

/** Elements that leave a reduction as it is. A place is none: it wins over later places. */
const nothing: Partial<Record<StmtOf<'reduce'>['monoid'], number>> = {
  sum: 0,
  max: Number.NEGATIVE_INFINITY,
  min: Number.POSITIVE_INFINITY,
}

/** Values of an element that leave each field as it is: a monoid of an author states them as its identity. */
const nothingOf = ({ stmt }: Reduced): readonly (number | undefined)[] =>
  stmt.kind === 'merge' ? stmt.monoid.fields.map(({ identity }) => identity) : [nothing[stmt.monoid]]

/** The values of an element that counts under a condition; undefined where an element counts otherwise, or under several. */
export function chosen(reduced: Reduced): { readonly when: Expr; readonly values: readonly Expr[] } | undefined {
  const empty = nothingOf(reduced)
  const isEmpty = (value: Expr | undefined, field: number): boolean => value?.kind === 'const' && value.value === empty[field]
  let when: Expr | undefined
  const values: Expr[] = []
  for (const [field, value] of reduced.values.entries()) {
    const [condition, counted, other] = value.kind === 'call' && value.fn === 'select' ? value.args : []
    if (condition !== undefined && counted !== undefined && isEmpty(other, field)) {
      if (when !== undefined && !sameExpr(condition, when)) return undefined
      when = condition
      values.push(counted)
    } else if (isEmpty(value, field)) values.push(value)
    else return undefined
  }
  return when === undefined ? undefined : { when, values }
}

/** The condition under which a row counts in every reduction, where it depends on the row alone: a scatter that adds is of this form. */
export function conditionOf(reductions: readonly Reduced[], column: string, row: string): Expr | undefined {
  const [first, ...others] = reductions.map((each) => chosen(each)?.when)
  if (first === undefined || !others.every((when) => when !== undefined && sameExpr(when, first))) return undefined
  const isOfRow = usesIndex(first, row) && !usesIndex(first, column) && !contains(first, ({ kind }) => kind === 'local')
  return isOfRow ? first : undefined
}
