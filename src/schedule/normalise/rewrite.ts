/**
 * Rewriting for scheduling passes, in addition to `ir/walk.ts`: structural hashes, top-down rewriting, and rewriting that knows which parts are
 * evaluated on every path. Expressions may be graphs; every function here visits a node once.
 */
import { constant } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import { mapOperands, operands, rewrite, visit, visitUp } from '../../ir/walk.js'

/** True if some node of the expression satisfies `test`. */
export function contains(e: Expr, test: (node: Expr) => boolean): boolean {
  let found = false
  visit(e, (node) => {
    found ||= test(node)
  })
  return found
}

/** True if the expression depends on an index variable of this name. */
export const usesIndex = (e: Expr, name: string): boolean => contains(e, (node) => node.kind === 'index' && node.name === name)

/** Loads in expressions, those of conditions and of reductions too. */
export function loadsOf(values: readonly Expr[]): readonly ExprOf<'load'>[] {
  const loads: ExprOf<'load'>[] = []
  for (const value of values) visit(value, (node) => node.kind === 'load' && loads.push(node))
  return loads
}

export { hashOf, sameExpr } from '../../ir/expr_hash.js'

/** Replaces dimensions by expressions: a fixed extent, or the tensor dimension that a layout axis stands for. */
export const substituteDims = (e: Expr, replacements: ReadonlyMap<string, Expr>): Expr =>
  rewrite(e, (node) => (node.kind === 'dim' ? (replacements.get(node.name) ?? node) : node))

/** Rewrites top-down. A node that `f` replaces is final; the operands of other nodes are rewritten next. */
export function rewriteDown(e: Expr, f: (node: Expr) => Expr | undefined): Expr {
  const done = new Map<Expr, Expr>()
  const go = (node: Expr): Expr => {
    const known = done.get(node)
    if (known !== undefined) return known
    const result = f(node) ?? mapOperands(node, go)
    done.set(node, result)
    return result
  }
  return go(e)
}

/** Calls that always evaluate their first argument and the others only as needed, as src/ir/evaluate.ts does. */
const lazyCalls: ReadonlySet<IntrinsicName> = new Set(['select', 'and', 'or'])

/**
 * `rewriteDown` that tells `f` whether the node is evaluated whenever the whole expression is. The branches of a `select`, the right side of `&&`
 * and `||` and the element of a serial reduction may not be.
 */
export const rewritePaths = (e: Expr, f: (node: Expr, always: boolean) => Expr | undefined): Expr =>
  rewriteWhere(
    e,
    () => false,
    (node, path) => f(node, path !== undefined),
  )

/** Conditions that hold wherever a node is evaluated: none for a node that always is; undefined if they are not known. */
export type Path = readonly Expr[] | undefined

/** `rewriteDown` that gives `f` the conditions under which a node is evaluated, among those that `isKnown` accepts; `start` holds everywhere. */
export function rewriteWhere(
  given: Expr,
  isKnown: (condition: Expr) => boolean,
  f: (node: Expr, path: Path) => Expr | undefined,
  start: readonly Expr[] = [],
): Expr {
  // A shared node is visited once per path.
  const done = new Map<string, Map<Expr, Expr>>()
  const go = (e: Expr, path: Path): Expr => {
    const key = path === undefined ? '?' : path.map(hashOf).join(' ')
    const visited = done.get(key) ?? new Map<Expr, Expr>()
    done.set(key, visited)
    const known = visited.get(e)
    if (known !== undefined) return known
    const result = f(e, path) ?? within(e, path)
    visited.set(e, result)
    return result
  }
  const within = (e: Expr, path: Path): Expr => {
    if (e.kind === 'fold') return { ...e, length: go(e.length, path), value: go(e.value, undefined) }
    if (e.kind !== 'call' || !lazyCalls.has(e.fn)) return mapOperands(e, (operand) => go(operand, path))
    const [condition, ...others] = e.args
    if (condition === undefined) return e
    const first = go(condition, path)
    if (e.fn !== 'select' || path === undefined || !isKnown(condition))
      return { ...e, args: [first, ...others.map((arg) => go(arg, undefined))] }
    const denied: Expr = { kind: 'call', type: 'bool', fn: 'not', args: [condition] }
    return { ...e, args: [first, ...others.map((arg, i) => go(arg, [...path, i === 0 ? condition : denied]))] }
  }
  return go(given, start)
}

/** Hashes of the serial reductions that are evaluated for every outcome of conditions. Of a `select`: those in both of its branches. */
export function foldsOnEveryPath(e: Expr): ReadonlySet<string> {
  const found = new Map<Expr, ReadonlySet<string>>()
  const of = (node: Expr | undefined): ReadonlySet<string> => (node === undefined ? none : (found.get(node) ?? none))
  visitUp(e, (node) => {
    const parts = operands(node)
    if (node.kind === 'fold') found.set(node, new Set([...of(node.length), hashOf(node)]))
    else if (node.kind === 'call' && node.fn === 'select') {
      const [condition, left, right] = node.args
      const both = [...of(left)].filter((key) => of(right).has(key))
      found.set(node, new Set([...of(condition), ...both]))
    } else if (node.kind === 'call' && lazyCalls.has(node.fn)) found.set(node, of(node.args[0]))
    else found.set(node, new Set(parts.flatMap((part) => [...of(part)])))
  })
  return of(e)
}

const none: ReadonlySet<string> = new Set()

/** Replaces one index variable. */
export const substituteIndex = (e: Expr, name: string, by: Expr): Expr =>
  rewrite(e, (node) => (node.kind === 'index' && node.name === name ? by : node))

/** Calls of two integers that return 0 if the first is 0. */
const zeroKept: ReadonlySet<IntrinsicName> = new Set(['idiv', 'mod', 'shiftRight', 'shiftLeft', 'bitAnd'])

/** Removes integer sums and products with zero, which remain after an index is replaced by 0. */
export const dropZeros = (e: Expr): Expr =>
  rewrite(e, (node) => {
    if (node.kind !== 'call' || node.type !== 'i32') return node
    const [a, b] = node.args
    if (a === undefined || b === undefined) return node
    if (node.fn === 'add') return isZero(b) ? a : isZero(a) ? b : node
    if (node.fn === 'mul') return isZero(a) || isZero(b) ? constant('i32', 0) : node
    return isZero(a) && zeroKept.has(node.fn) ? a : node
  })

export const isZero = (e: Expr): boolean => e.kind === 'const' && e.value === 0
