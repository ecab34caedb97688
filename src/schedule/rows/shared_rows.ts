/**
 * Rows in shared memory. An element that is read at another index than its loop's is inlined, which means recomputed where it is read. That is
 * cheap for arithmetic, expensive for a serial reduction, and impossible for the result of a recurrence. A short row of the latter kinds that is
 * read at other indices is therefore computed once, by the threads of the row. Decided for each row during normalisation.
 */
import { isShort } from '../../ir/constructs/row.js'
import { whenOf } from '../../ir/constructs/when.js'
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { stmtExprs } from '../../ir/walk.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { type Context, loopFor, overLoop } from '../normalise/elements.js'
import type { SharedRow, Statement } from '../normalise/normal.js'
import { contains, sameExpr, usesIndex } from '../normalise/rewrite.js'

/**
 * True if a row is to be shared. Its length must be known when source is generated, and all elements of the loop must have the same row: if a row
 * axis became the loop, its index is `elementIndex`.
 */
export function isShared(s: StmtOf<'row'>, statements: readonly Statement[], elementIndex: string | undefined): boolean {
  if (!isShort(s.length)) return false
  if (elementIndex !== undefined && (s.index === elementIndex || usesIndex(s.value, elementIndex))) return false
  const isExpensive = contains(s.value, (e) => e.kind === 'fold') || readsInOrder(s.value, statements)
  return isExpensive && statements.some((other) => readsElsewhere(other, s))
}

/** True if a value reads a row whose elements are computed in sequence, so that none can be recomputed where it is read. */
function readsInOrder(value: Expr, statements: readonly Statement[]): boolean {
  const read = new Set<string>()
  contains(value, (e) => {
    if (e.kind === 'element') read.add(e.row)
    return false
  })
  if (read.size === 0) return false
  return statements.some((s) => {
    if (s.kind === 'row' || s.kind === 'scan') return read.has(s.name) && readsInOrder(s.value, statements)
    return (s.kind === 'mergeScan' || s.kind === 'foldRow') && s.names.some((name) => read.has(name))
  })
}

/** True if a statement reads an element of the row at an index other than that of a loop as long as the row. */
export function readsElsewhere(s: Statement, row: StmtOf<'row'> | StmtOf<'scan'>): boolean {
  const loop = 'length' in s ? s : undefined
  const isOwnIndex = (at: Expr): boolean =>
    loop !== undefined && at.kind === 'index' && at.name === loop.index && sameExpr(loop.length, row.length)
  const exprs = s.kind === 'writtenStore' ? [...s.indices, s.length, ...whenOf(s), s.value] : stmtExprs(s)
  return exprs.some((e) => contains(e, (node) => node.kind === 'element' && node.row === row.name && !isOwnIndex(node.index)))
}

/** Statement that computes a shared row. */
export function shareRow(s: StmtOf<'row'>, context: Context): SharedRow[] {
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  const length = s.length.kind === 'const' ? Number(s.length.value) : (s.kept ?? 0)
  const row: SharedRow = { kind: 'sharedRow', name: s.name, type: s.type, length, loop, value }
  context.shared.set(s.name, row)
  return [row]
}
