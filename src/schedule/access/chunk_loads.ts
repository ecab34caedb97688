/**
 * Vectorises loads that are made for every element, loads that are proven in bounds, and loads guarded by a row-uniform condition. `x(t, c)`
 * guarded by `t < count` becomes a vector load that the condition masks.
 */
import { call, i32, index as indexVar } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import { addLoadedRow, type Context, isInBounds, runOf } from '../normalise/elements.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { contains, hashOf, type Path, rewriteWhere, sameExpr, usesIndex } from '../normalise/rewrite.js'
import { knownOfAxes, withoutClamps } from '../windows/inequalities.js'
import { nameSpans } from '../windows/spans.js'
import { placeKey } from './interleaved.js'
import { inPiece, isCondition, whereKnown } from './segments.js'

/**
 * Replaces contiguous loads by elements of a row that is loaded in chunks. If `when` is given, the value is evaluated only for elements where it
 * holds.
 */
export function nameChunkLoads(given: Expr, loop: Loop, context: Context, when?: Expr): Expr {
  const { pieces } = context
  const spanned = context.inSpans ? nameSpans(given, loop, context, when) : given
  const places = (e: Expr): Expr => withoutClamps(e, knownOfAxes(context.kernel, context.fixed))
  const value = pieces === undefined ? spanned : inPiece(places(spanned), loop, pieces)
  const chunk = (e: Expr, path: Path) => (e.kind === 'load' ? chunkOf(e, path, loop, context) : undefined)
  return rewriteWhere(value, () => true, chunk, when === undefined ? [] : [when])
}

/** The load as an element of a row in chunks; undefined if it cannot be a vector load. */
function chunkOf(given: ExprOf<'load'>, path: Path, loop: Loop, context: Context): Expr | undefined {
  const load = whereKnown(given, path ?? [])
  const interleaved = context.interleaved.get(placeKey(load))
  if (interleaved !== undefined) return elementOf(given, load, { loop, run: Number.POSITIVE_INFINITY, interleaved }, context)
  const run = runOf(load, loop, context)
  if (run === undefined) return undefined
  const guards = path?.length === 0 || isInBounds(load, context) ? [] : path
  if (guards === undefined || !guards.every((guard) => isKnownEarly(guard, loop, context))) return undefined
  const [first, ...more] = guards
  const guard = first === undefined ? undefined : more.reduce((all, next) => call('and', all, next), first)
  const safe = guard === undefined ? load : guarded(load, guard, loop)
  if (safe === undefined) return undefined
  return elementOf(given, safe, { loop, run, guard }, context)
}

/** An element of the row of a load, which is added if there is none yet. */
function elementOf(given: Expr, load: ExprOf<'load'>, about: Parameters<typeof addLoadedRow>[2], context: Context): Expr {
  const { loop, guard } = about
  // The load contains the index of its loop, and no two loops share one.
  const same = [...context.rows.values()].find(
    (row) => row.kind === 'loaded' && sameExpr(row.load, load) && keyOfGuard(row.guard) === keyOfGuard(guard),
  )
  const name = same?.name ?? freshName(`${load.tensor}_${loop.index}`, context.taken)
  if (same === undefined) addLoadedRow(name, load, about, context)
  return inPlaceOf(given, { kind: 'element', type: load.type, row: name, index: indexVar(loop.index) })
}

const keyOfGuard = (guard: Expr | undefined): string => (guard === undefined ? '' : hashOf(guard))

/** True if a guard is the same for all elements of a row and is known before any value of the row is computed. */
const isKnownEarly = (guard: Expr, { index }: Loop, { pieces }: Context): boolean =>
  !usesIndex(guard, index) &&
  !contains(guard, (e) => (e.kind === 'local' && !isCondition(e.name, pieces)) || e.kind === 'element' || e.kind === 'fold')

/** True if an expression computes from indices and parameters alone and cannot fault. */
const isArithmetic = (e: Expr): boolean =>
  !contains(e, (node) => {
    if (node.kind === 'call') return node.fn === 'idiv' || node.fn === 'mod'
    return node.kind === 'load' || node.kind === 'element' || node.kind === 'fold'
  })

/** The load with indices that can be computed where the guard does not hold; undefined if there are none. */
function guarded(load: ExprOf<'load'>, guard: Expr, { index }: Loop): ExprOf<'load'> | undefined {
  const isLoop = (e: Expr): boolean => e.kind === 'index' && e.name === index
  const isAlong = (e: Expr): boolean => usesIndex(e, index)
  if (!load.indices.every((e) => isLoop(e) || !isAlong(e) || isArithmetic(e))) return undefined
  const isPlain = (e: Expr): boolean => e.kind === 'index' || e.kind === 'const' || isAlong(e)
  return { ...load, indices: load.indices.map((e) => (isPlain(e) ? e : call('select', guard, e, i32(0)))) }
}
