/**
 * Pieces of a row. If a body compares the index of its loop with `c < e`, the result is the same for all elements of a chunk unless `e` lies inside
 * the chunk. A thread with one chunk compares only the first element, and loads whose places depend on the result, such as the other half of a
 * rotated head, are contiguous again. Runs while an elementwise kernel is normalised for chunks that lie in one piece.
 */
import { index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { isHostExpr } from '../normalise/host_expr.js'
import type { Loop, Pieces } from '../normalise/normal.js'
import { hashOf, rewriteDown } from '../normalise/rewrite.js'

/** True if a scalar names the condition of a store: a let before the one pass of an elementwise kernel. */
export const isCondition = (name: string, pieces: Pieces | undefined): boolean =>
  pieces !== undefined && [...pieces.conditions.values()].some((known) => known.name === name)

/** Replaces the loop's index by the chunk's first element in comparisons, and records their bounds. */
export const inPiece = (e: Expr, loop: Loop, { index, bounds }: Pieces): Expr =>
  rewriteDown(e, (node) => {
    const bound = boundOf(node, loop)
    if (node.kind !== 'call' || bound === undefined) return undefined
    bounds.set(hashOf(bound), bound)
    return { ...node, args: node.args.map((arg) => (arg === bound ? arg : indexVar(index))) }
  })

/** Bound of a comparison whose result changes once along the loop: `c < e`, `c >= e`, and the same with sides exchanged. */
export function boundOf(node: Expr, loop: Pick<Loop, 'index'>): Expr | undefined {
  if (node.kind !== 'call') return undefined
  const [left, right] = node.args
  if (left === undefined || right === undefined) return undefined
  const isLoop = (e: Expr): boolean => e.kind === 'index' && e.name === loop.index
  if ((node.fn === 'lt' || node.fn === 'ge') && isLoop(left) && isHostExpr(right)) return right
  if ((node.fn === 'gt' || node.fn === 'le') && isLoop(right) && isHostExpr(left)) return left
  return undefined
}

/** A load under known conditions: a `select` between places by one of them is replaced by the selected place. */
export function whereKnown(load: ExprOf<'load'>, conditions: readonly Expr[]): ExprOf<'load'> {
  const known = new Map<string, boolean>()
  for (const condition of conditions) {
    const [denied] = condition.kind === 'call' && condition.fn === 'not' ? condition.args : []
    known.set(hashOf(denied ?? condition), denied === undefined)
  }
  const chosen = (e: Expr): Expr =>
    rewriteDown(e, (node) => {
      const [condition, yes, no] = node.kind === 'call' && node.fn === 'select' ? node.args : []
      const answer = condition === undefined ? undefined : known.get(hashOf(condition))
      const taken = answer === true ? yes : answer === false ? no : undefined
      return taken === undefined ? undefined : chosen(taken)
    })
  return { ...load, indices: load.indices.map(chosen) }
}
