/**
 * Vectorises loads: one that is made for every element, one that is proven in bounds, and one behind a condition that is the same for
 * the whole row. `x(t, c)` behind `t < count` becomes a vector load that is masked by the condition.
 */
import { call, i32, index as indexVar } from '../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../ir/expr.js'
import { addLoadedRow, type Context, isInBounds, runOf } from './elements.js'
import { freshName, type Loop } from './normal.js'
import { inPiece, isCondition, whereKnown } from './pieces.js'
import { contains, hashOf, type Path, rewriteWhere, sameExpr, usesIndex } from './rewrite.js'

/** Replaces contiguous loads by elements of a row that is loaded in chunks. `when`: the value is evaluated for elements where it holds alone. */
export function nameChunkLoads(given: Expr, loop: Loop, context: Context, when?: Expr): Expr {
  const { pieces } = context
  const value = pieces === undefined ? given : inPiece(given, loop, pieces)
  const chunk = (e: Expr, path: Path) => (e.kind === 'load' ? chunkOf(e, path, loop, context) : undefined)
  return rewriteWhere(value, () => true, chunk, when === undefined ? [] : [when])
}

/** A load as an element of a row in chunks; undefined when it cannot be a vector load. */
function chunkOf(given: ExprOf<'load'>, path: Path, loop: Loop, context: Context): Expr | undefined {
  const load = whereKnown(given, path ?? [])
  const run = runOf(load, loop, context)
  if (run === undefined) return undefined
  const guards = path?.length === 0 || isInBounds(load, context) ? [] : path
  if (guards === undefined || !guards.every((guard) => isKnownEarly(guard, loop, context))) return undefined
  const [first, ...more] = guards
  const guard = first === undefined ? undefined : more.reduce((all, next) => call('and', all, next), first)
  const safe = guard === undefined ? load : guarded(load, guard, loop)
  if (safe === undefined) return undefined
  // The load has the index of its loop, and no two loops share one.
  const same = [...context.rows.values()].find(
    (row) => row.kind === 'loaded' && sameExpr(row.load, safe) && keyOfGuard(row.guard) === keyOfGuard(guard),
  )
  const name = same?.name ?? freshName(`${load.tensor}_${loop.index}`, context.taken)
  if (same === undefined) addLoadedRow(name, safe, { loop, run, guard }, context)
  return inPlaceOf(given, { kind: 'element', type: load.type, row: name, index: indexVar(loop.index) })
}

const keyOfGuard = (guard: Expr | undefined): string => (guard === undefined ? '' : hashOf(guard))

/** The same for all elements of a row, and known before anything is computed of it. */
const isKnownEarly = (guard: Expr, { index }: Loop, { pieces }: Context): boolean =>
  !usesIndex(guard, index) &&
  !contains(guard, (e) => (e.kind === 'local' && !isCondition(e.name, pieces)) || e.kind === 'element' || e.kind === 'fold')

/** Computes from indices and parameters alone, with nothing that can fault. */
const isArithmetic = (e: Expr): boolean =>
  !contains(e, (node) => {
    if (node.kind === 'call') return node.fn === 'idiv' || node.fn === 'mod'
    return node.kind === 'load' || node.kind === 'element' || node.kind === 'fold'
  })

/** The load with a place that may be computed where the guard does not hold; undefined when that cannot be had. */
function guarded(load: ExprOf<'load'>, guard: Expr, { index }: Loop): ExprOf<'load'> | undefined {
  const isLoop = (e: Expr): boolean => e.kind === 'index' && e.name === index
  const isAlong = (e: Expr): boolean => usesIndex(e, index)
  if (!load.indices.every((e) => isLoop(e) || !isAlong(e) || isArithmetic(e))) return undefined
  const isPlain = (e: Expr): boolean => e.kind === 'index' || e.kind === 'const' || isAlong(e)
  return { ...load, indices: load.indices.map((e) => (isPlain(e) ? e : call('select', guard, e, i32(0)))) }
}
