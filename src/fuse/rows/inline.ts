/**
 * Inlines rows that have one reader and rows that are copies of another, so that they take no registers. Runs after derivation, which makes a row
 * of every value that a member computes.
 */
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { mapStmt, rewrite, stmtExprs, substitute, visit } from '../../ir/walk.js'

/** Inlines until no row is read exactly once, unread, or a plain alias. Values and their order of evaluation do not change. */
export function inlineRows(kernel: Kernel): Kernel {
  let body = kernel.body
  for (;;) {
    const row = body.find((stmt): stmt is StmtOf<'row'> => stmt.kind === 'row' && inlinable(stmt, body))
    if (row === undefined) return { ...kernel, body }
    body = body.flatMap((stmt) => (stmt === row ? [] : [mapStmt(stmt, (expr) => replace(expr, row))]))
  }
}

const inlinable = (row: StmtOf<'row'>, body: readonly Stmt[]): boolean =>
  row.value.kind === 'element' || reads(row.name, body) <= 1

function reads(row: string, body: readonly Stmt[]): number {
  let count = 0
  for (const expr of body.flatMap(stmtExprs)) {
    visit(expr, (node) => {
      if (node.kind === 'element' && node.row === row) count += 1
    })
  }
  return count
}

const replace = (expr: Expr, row: StmtOf<'row'>): Expr =>
  rewrite(expr, (node) =>
    node.kind === 'element' && node.row === row.name ? substitute(row.value, new Map([[row.index, node.index]])) : node,
  )
