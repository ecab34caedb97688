/**
 * Drops values that no later step reads. It runs from last to first, so that their inputs are dropped too: a length that is written out for the
 * host, a row that simplification has replaced. Stores and counts stay. Last of the passes that order and simplify steps.
 */
import type { Expr } from '../../ir/expr.js'
import { stmtExprs, visit } from '../../ir/walk.js'
import { passStatementOf, rowStatementOf } from '../constructs/index.js'
import { type PassStmt, type RowStmt, rowExprs, startsOf } from './normal.js'
import type { Pass, Step } from './passes.js'

/** Statements with effects; all others are dropped if nothing reads their results. */
const leaves: ReadonlySet<(RowStmt | PassStmt)['kind']> = new Set(['store', 'foldState', 'meet', 'loopStore', 'histogram'])

export function dropUnread(steps: readonly Step[]): Step[] {
  const read = new Set<string>()
  const see = (exprs: readonly Expr[]): void => {
    for (const expr of exprs)
      visit(expr, (node) => {
        if (node.kind === 'local') read.add(node.name)
        else if (node.kind === 'element') read.add(node.row)
      })
  }
  const kept: Step[] = []
  for (const step of [...steps].reverse()) {
    const left = step.kind === 'pass' ? leftOfPass(step.pass, read, see) : leftOfRow(step, read, see)
    if (left !== undefined) kept.unshift(left)
  }
  return kept
}

function leftOfRow(step: RowStmt, read: ReadonlySet<string>, see: (exprs: readonly Expr[]) => void): Step | undefined {
  const statement = rowStatementOf(step)
  if (!leaves.has(step.kind) && !statement.defines(step).some(({ name }) => read.has(name))) return undefined
  see([...statement.places(step), ...statement.values(step)])
  if (step.kind === 'foldState') see([...stmtExprs(step), ...step.stores.flatMap(({ indices }) => indices)])
  return step
}

function leftOfPass(pass: Pass, read: ReadonlySet<string>, see: (exprs: readonly Expr[]) => void): Step | undefined {
  const statements = pass.statements.filter((s) => leaves.has(s.kind) || definedNames(s).some((name) => read.has(name)))
  for (const s of statements) see([...passStatementOf(s).places(s), ...passStatementOf(s).values(s)])
  const rows = [...pass.rows].reverse().filter((row) => {
    if (!read.has(row.name)) return false
    see([...rowExprs(row), ...startsOf(row), ...(row.kind === 'loaded' && row.guard !== undefined ? [row.guard] : [])])
    return true
  })
  if (statements.length + rows.length === 0) return undefined
  see([pass.loop.length])
  return { kind: 'pass', pass: { ...pass, rows: rows.reverse(), statements } }
}

const definedNames = (s: PassStmt): readonly string[] =>
  passStatementOf(s)
    .defines(s)
    .map(({ name }) => name)
