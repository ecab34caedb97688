/**
 * Rows in pieces: a body that asks `c < e` of an element's index, as the halves of a rotated head do, gets one answer for all elements of a
 * chunk wherever `e` is a multiple of it. The answers then have names, and what is read by them lies one behind the other again. For functions that
 * give some neighbouring elements at a time; passes over rows have schedule/chunk_loads.ts.
 */
import { local } from '../ir/build.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { boundOf, whereKnown } from '../schedule/pieces.js'
import { contains, hashOf, rewriteDown } from '../schedule/rewrite.js'

/** A comparison of the first element of a chunk, and the name of its answer. */
export interface PieceCondition {
  readonly name: string
  readonly of: Expr
}

export interface Pieced {
  readonly value: Expr
  readonly conditions: readonly PieceCondition[]
  /** What has to be a multiple of a chunk. */
  readonly bounds: readonly Expr[]
}

/** A value whose comparisons of `index` have names, which no author can give; without any, nothing is in pieces. */
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

/** True if an expression is the answer to one of these comparisons. */
export const isAnswer = (e: Expr | undefined, { conditions }: Pieced): e is ExprOf<'local'> =>
  e?.kind === 'local' && conditions.some(({ name }) => name === e.name)

/** A load as it is by each combination of the answers that its indices depend on. */
export function alternatives(load: ExprOf<'load'>, pieced: Pieced): readonly ExprOf<'load'>[] {
  const asked = pieced.conditions.find(({ name }) => contains(load, (e) => e.kind === 'local' && e.name === name))
  if (asked === undefined) return [load]
  const answer = local(asked.name, 'bool')
  const denied: Expr = { kind: 'call', type: 'bool', fn: 'not', args: [answer] }
  const [yes, no] = [whereKnown(load, [answer]), whereKnown(load, [denied])]
  // Asked for something else than a choice between places, the answer stays in.
  const isChoice = [yes, no].every((one) => !contains(one, (e) => e.kind === 'local' && e.name === asked.name))
  return isChoice ? [...alternatives(yes, pieced), ...alternatives(no, pieced)] : [load]
}
