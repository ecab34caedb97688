/**
 * Elements of rows that are scalars of the kernel's points: `best.values(2)`, the third largest of a ranking, is one number for the rows that share
 * the ranking. Each becomes a scalar of its own after the statement that makes its row, so that a launch in front can compute it.
 */
import { constructOf } from '../../ir/constructs/index.js'
import type { ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { introducedNames, mapStmt, rewrite, stmtExprs, visit } from '../../ir/walk.js'
import { numberOf } from '../access/access.js'
import { freshName } from './normal.js'

/** A kernel whose picked elements are scalars, and for each of these the statement that makes its row. */
export interface PickedKernel {
  readonly kernel: Kernel
  readonly picked: ReadonlyMap<Stmt, Stmt>
}

/** Elements that a row has whatever the sizes are, if it may be read at any index. A read of another may depend on a condition. */
function fixedCount(stmt: Stmt): number {
  const count = stmt.kind === 'topK' ? stmt.count : stmt.kind === 'counts' ? stmt.bins : undefined
  return (count && numberOf(count)) ?? 0
}

/** Makes scalars of elements at places that are numbers. */
export function pickElements(kernel: Kernel): PickedKernel {
  const taken = new Set([
    ...kernel.dims,
    ...[...kernel.attrs, ...kernel.tensors].map(({ name }) => name),
    ...kernel.rows.map(({ index }) => index),
    ...kernel.body.flatMap(introducedNames),
  ])
  const picked = new Map<Stmt, Stmt>()
  const scalars = new Map<string, StmtOf<'let'>>()
  for (const stmt of kernel.body) {
    const rows = new Set(
      constructOf(stmt)
        .defines(stmt)
        .map(({ name }) => name),
    )
    for (const element of elementsOf(kernel.body, rows, fixedCount(stmt))) {
      const scalar: StmtOf<'let'> = { kind: 'let', name: freshName(element.row, taken), type: element.type, value: element }
      scalars.set(hashOf(element), scalar)
      picked.set(scalar, stmt)
    }
  }
  if (picked.size === 0) return { kernel, picked }
  const body = kernel.body.flatMap((stmt) => [
    mapStmt(stmt, (expr) =>
      rewrite(expr, (node) => localOf(node.kind === 'element' ? scalars.get(hashOf(node)) : undefined) ?? node),
    ),
    ...[...picked].flatMap(([scalar, from]) => (from === stmt ? [scalar] : [])),
  ])
  return { kernel: { ...kernel, body }, picked }
}

const localOf = (scalar: StmtOf<'let'> | undefined): ExprOf<'local'> | undefined =>
  scalar && { kind: 'local', name: scalar.name, type: scalar.type }

/** Elements of rows at numbered places, each once. @param count of elements of a row */
function elementsOf(body: readonly Stmt[], rows: ReadonlySet<string>, count: number): readonly ExprOf<'element'>[] {
  const found = new Map<string, ExprOf<'element'>>()
  for (const expr of body.flatMap(stmtExprs))
    visit(expr, (node) => {
      if (node.kind !== 'element' || !rows.has(node.row)) return
      const at = numberOf(node.index)
      if (at !== undefined && at >= 0 && at < count) found.set(hashOf(node), node)
    })
  return [...found.values()]
}
