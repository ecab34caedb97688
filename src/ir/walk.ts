/**
 * Visiting and rewriting expressions and statements. An expression may be a graph: a value that the author named inside an
 * element is the same node in each use. Rewriting preserves this sharing, so it costs one visit per node.
 */
import { constructOf } from './constructs/index.js'
import { type Expr, spanOf } from './expr.js'
import type { Kernel, Stmt } from './kernel.js'
import { mapOperands, operands } from './map_operands.js'
import { placeOfSpan } from './span.js'

export { mapOperands, operands } from './map_operands.js'

/** Calls `see` on each node once, an expression after its operands. Not recursive, so that expressions of any depth work. */
export function visitUp(expr: Expr, see: (expr: Expr) => void): void {
  const seen = new Set<Expr>()
  const path: { readonly node: Expr; readonly of: readonly Expr[]; next: number }[] = []
  const enter = (node: Expr): void => {
    if (seen.has(node)) return
    seen.add(node)
    path.push({ node, of: operands(node), next: 0 })
  }
  enter(expr)
  for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
    const operand = at.of[at.next++]
    if (operand !== undefined) enter(operand)
    else {
      path.pop()
      see(at.node)
    }
  }
}

/** Rewrites bottom-up: `rule` sees each node once, after its operands. Shared nodes stay shared. */
export function rewrite(expr: Expr, rule: (expr: Expr) => Expr): Expr {
  const done = new Map<Expr, Expr>()
  visitUp(expr, (node) => {
    done.set(node, rule(mapOperands(node, (operand) => done.get(operand) ?? operand)))
  })
  return done.get(expr) ?? expr
}

/** Calls `see` on each node once, an expression before its operands. */
export function visit(expr: Expr, see: (expr: Expr) => void): void {
  const seen = new Set<Expr>()
  const waiting = [expr]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    see(node)
    waiting.push(...[...operands(node)].reverse())
  }
}

/** Source lines of an expression, each once, the outermost first. */
export function placesOf(expr: Expr): readonly string[] {
  const places = new Set<string>()
  visit(expr, (node) => {
    const span = spanOf(node)
    if (span !== undefined) places.add(placeOfSpan(span))
  })
  return [...places]
}

/** The expression without source locations. */
export const withoutSpans = (expr: Expr): Expr =>
  rewrite(expr, (node) => {
    if (spanOf(node) === undefined) return node
    const { span: _, ...rest } = { span: undefined, ...node }
    return rest
  })

/** Free indices, locals and rows of an expression. Names are unique, so a name bound anywhere in it is bound everywhere. */
export function freeNames(expr: Expr): ReadonlySet<string> {
  const names = new Set<string>()
  const bound = new Set<string>()
  visit(expr, (node) => {
    if (node.kind === 'index' || node.kind === 'local') names.add(node.name)
    if (node.kind === 'element') names.add(node.row)
    if (node.kind === 'fold') bound.add(node.index)
  })
  for (const name of bound) names.delete(name)
  return names
}

/** Replaces indices and locals by name. Names are unique in a kernel, so nothing can be captured. */
export const substitute = (expr: Expr, values: ReadonlyMap<string, Expr>): Expr =>
  rewrite(expr, (node) => (node.kind === 'index' || node.kind === 'local' ? (values.get(node.name) ?? node) : node))

/** All expressions of a statement, those of the row first. */
export function stmtExprs(stmt: Stmt): readonly Expr[] {
  const construct = constructOf(stmt)
  return [...construct.rowExprs(stmt), ...construct.elementExprs(stmt)]
}

/** The statement with every expression replaced. */
export const mapStmt = (stmt: Stmt, map: (expr: Expr) => Expr): Stmt => constructOf(stmt).map(stmt, map)

/** Names that a statement introduces: its scalars, row values and loop indices. */
export const introducedNames = (stmt: Stmt): readonly string[] => [
  ...constructOf(stmt)
    .defines(stmt)
    .map(({ name }) => name),
  ...('index' in stmt ? [stmt.index] : []),
  ...('column' in stmt ? [stmt.column] : []),
]

/** Calls `see` on every expression node of a kernel. */
export const visitKernel = (kernel: Kernel, see: (expr: Expr) => void): void =>
  kernel.body.flatMap(stmtExprs).forEach((expr) => {
    visit(expr, see)
  })
