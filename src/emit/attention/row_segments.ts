/**
 * Rows in pieces. A body may compare `c < e` for an element's index, as the halves of a rotated head do. If `e` is a multiple of the chunk, the
 * result is the same for all elements of a chunk. The results are then named, and the loads that depend on them are contiguous again. For functions
 * that compute a few consecutive elements at a time; passes over rows use schedule/access/chunk_loads.ts.
 */
import { local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { boundOf, whereKnown } from '../../schedule/access/segments.js'
import { contains, hashOf, rewriteDown } from '../../schedule/normalise/rewrite.js'

/** A comparison of the first element of a chunk, and the name of its result. */
export interface PieceCondition {
  readonly name: string
  readonly of: Expr
}

export interface Pieced {
  readonly value: Expr
  readonly conditions: readonly PieceCondition[]
  /** Values that must be multiples of a chunk. */
  readonly bounds: readonly Expr[]
}

/** The value with its comparisons of `index` named. The names cannot occur in a body. Without comparisons the value is not in pieces. */
export function inPieces(value: Expr, index: string): Pieced {
  const conditions = new Map<string, PieceCondition>()
  const bounds = new Map<string, Expr>()
  const named = rewriteDown(value, (node) => {
    const bound = boundOf(node, { index })
    if (bound === undefined) return undefined
    bounds.set(hashOf(bound), bound)
    const key = hashOf(node)
    const condition = conditions.get(key) ?? { name: `piece ${conditions.size}`, of: node }
    conditions.set(key, condition)
    return local(condition.name, 'bool')
  })
  return { value: named, conditions: [...conditions.values()], bounds: [...bounds.values()] }
}

/** True if an expression is the result of one of these comparisons. */
export const isAnswer = (e: Expr | undefined, { conditions }: Pieced): e is ExprOf<'local'> =>
  e?.kind === 'local' && conditions.some(({ name }) => name === e.name)

/** Forms of a load for all combinations of the comparisons that its indices depend on. */
export function alternatives(load: ExprOf<'load'>, pieced: Pieced): readonly ExprOf<'load'>[] {
  const asked = pieced.conditions.find(({ name }) => contains(load, (e) => e.kind === 'local' && e.name === name))
  if (asked === undefined) return [load]
  const answer = local(asked.name, 'bool')
  const denied: Expr = { kind: 'call', type: 'bool', fn: 'not', args: [answer] }
  const [yes, no] = [whereKnown(load, [answer]), whereKnown(load, [denied])]
  // If the result is used other than to select between places, it remains.
  const isChoice = [yes, no].every((one) => !contains(one, (e) => e.kind === 'local' && e.name === asked.name))
  return isChoice ? [...alternatives(yes, pieced), ...alternatives(no, pieced)] : [load]
}
