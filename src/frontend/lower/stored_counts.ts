/**
 * Histograms that an author names and returns: counts that only one output reads are counted directly in that output, in as
 * many bins as it has, and take no shared memory. Runs when a body is lowered.
 */
import type { Expr } from '../../ir/expr.js'
import type { Stmt, StmtOf } from '../../ir/kernel.js'
import { freeNames, stmtExprs } from '../../ir/walk.js'

/** @param plain the outputs that are stored as 32-bit integers */
export function countWhereStored(body: readonly Stmt[], plain: ReadonlySet<string>): Stmt[] {
  const counted = new Map<Stmt, StmtOf<'counts'>>()
  for (const s of body) {
    if (s.kind !== 'counts') continue
    const [only, ...others] = body.filter((other) => stmtExprs(other).some((expr) => freeNames(expr).has(s.name)))
    if (others.length === 0 && only?.kind === 'storeRow' && plain.has(only.tensor) && isElement(only.value, only.index))
      counted.set(only, s)
  }
  const gone = new Set<Stmt>(counted.values())
  return body.flatMap((s): Stmt[] => {
    const of = counted.get(s)
    if (s.kind !== 'storeRow' || of === undefined) return gone.has(s) ? [] : [s]
    const { bins, length, index, value } = of
    return [{ kind: 'histogram', tensor: s.tensor, rows: s.rows, bins, length, index, value }]
  })
}

const isElement = (value: Expr, index: string): boolean =>
  value.kind === 'element' && value.index.kind === 'index' && value.index.name === index
