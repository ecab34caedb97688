/**
 * Spans of windows: loads beside the place of an element, along the axis that chunks lie along. The loads of neighbouring elements overlap, so that a
 * thread loads its chunk and the elements beside it once, aligned. Elements beyond an end of the row are not loaded and are 0, as windows that are
 * padded have it, so that neither loads nor values need conditions along the row.
 *
 *     j > 0 ? x[i, j - 1] : 0        the element before j of a span of x[i, ...]
 */
import { call, dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import { linearOf, termKey } from '../../ir/linear.js'
import { addLoadedRow, type Context, runOf } from '../normalise/elements.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { contains, hashOf, type Path, rewriteWhere, sameExpr, usesIndex } from '../normalise/rewrite.js'
import { conjuncts, follows, isNotNegative, type Known, knownOfAxes, knownWith } from './inequalities.js'

/** A load of an element beside the place of the loop. */
interface Beside {
  /** The load at the place itself. */
  readonly load: ExprOf<'load'>
  readonly shift: number
  /** Conditions that are the same along the row. */
  readonly guards: readonly Expr[]
  /** Inequalities where the element exists and the guards hold. */
  readonly known: Known
}

/** Replaces loads beside the loop's place by elements of rows in spans. @param when a condition under which the value is computed */
export function nameSpans(value: Expr, loop: Loop, context: Context, when?: Expr): Expr {
  const start = when === undefined ? [] : [when]
  const named = (load: ExprOf<'load'>, path: Path, given: Expr, least: readonly Expr[]): Expr | undefined => {
    const beside = path && besideOf(load, path, loop, context)
    if (beside === undefined || !least.every((each) => follows(each, beside.known))) return undefined
    const name = rowOf(beside, loop, context)
    return name === undefined
      ? undefined
      : inPlaceOf(given, { kind: 'element', type: load.type, row: name, index: indexVar(loop.index) })
  }
  return rewriteWhere(
    value,
    () => true,
    (node, path) => {
      if (node.kind === 'load') return named(node, path, node, [])
      const [condition, load, other] = node.kind === 'call' && node.fn === 'select' ? node.args : []
      if (path === undefined || condition === undefined || load?.kind !== 'load' || !isZeroValue(other)) return undefined
      return named(load, [...path, condition], node, conjuncts(condition))
    },
    start,
  )
}

const isZeroValue = (e: Expr | undefined): boolean => e?.kind === 'const' && (e.value === 0 || e.value === false)

/** The load as one beside the loop's place; undefined if it is none, or if its place is not proven to lie inside of its tensor. */
export function besideOf(
  { tensor: name, indices, ...rest }: ExprOf<'load'>,
  path: readonly Expr[],
  loop: Loop,
  context: Pick<Context, 'kernel' | 'fixed'>,
): Beside | undefined {
  const { kernel, fixed } = context
  const dims = kernel.tensors.find((each) => each.name === name)?.dims ?? []
  const extents = dims.map((dim) => {
    const known = getOwn(fixed, dim)
    return known === undefined ? dimVar(dim) : i32(known)
  })
  const [last, extent] = [indices.at(-1), extents.at(-1)]
  const others = indices.slice(0, -1)
  const shift = last === undefined ? undefined : shiftOf(last, loop.index)
  if (shift === undefined || extent === undefined || !sameExpr(extent, loop.length)) return undefined
  if (others.some((at) => usesIndex(at, loop.index) || !isPlace(at))) return undefined
  const conditions = path.flatMap(conjuncts)
  const guards = conditions.filter((each) => !usesIndex(each, loop.index))
  if (
    guards.some((each) =>
      contains(each, ({ kind }) => kind === 'local' || kind === 'element' || kind === 'fold' || kind === 'load'),
    )
  )
    return undefined
  const above = knownOfAxes(kernel, fixed, guards)
  const isInside = others.every((at, i) => isWithin(at, extents[i] ?? i32(0), above))
  const place = call('add', indexVar(loop.index), i32(shift))
  const known = knownWith(above, [call('ge', place, i32(0)), call('lt', place, extent), call('lt', indexVar(loop.index), extent)])
  if (!isInside || !conditions.every((each) => follows(each, known) || guards.includes(each))) return undefined
  const load: ExprOf<'load'> = { ...rest, tensor: name, indices: [...others, indexVar(loop.index)] }
  return { load, shift, guards: distinct(guards), known }
}

/** Distance of a place from an index; undefined if it is no number. */
function shiftOf(at: Expr, index: string): number | undefined {
  const { terms, constant } = linearOf(at)
  const only = terms.get(termKey(indexVar(index)))
  return terms.size === 1 && only?.factor === 1 ? constant : undefined
}

/** True for a sum of indices, extents and numbers. */
const isPlace = (at: Expr): boolean =>
  [...linearOf(at).terms.values()].every(({ expr }) => expr.kind === 'index' || expr.kind === 'dim')

const isWithin = (at: Expr, extent: Expr, known: Known): boolean =>
  isNotNegative(linearOf(at), known) && isNotNegative(linearOf(call('sub', call('sub', extent, at), i32(1))), known)

/** Each condition once. */
const distinct = (all: readonly Expr[]): readonly Expr[] => [...new Map(all.map((each) => [hashOf(each), each])).values()]

/** Name of the row of a span's elements, which is added if there is none yet. */
function rowOf({ load, shift, guards }: Beside, loop: Loop, context: Context): string | undefined {
  const run = runOf(load, loop, context)
  if (run === undefined) return undefined
  const [first, ...more] = guards
  const guard = first === undefined ? undefined : more.reduce((all, next) => call('and', all, next), first)
  const same = [...context.rows.values()].find(
    (row) =>
      row.kind === 'loaded' &&
      row.shift === shift &&
      sameExpr(row.load, load) &&
      (row.guard === undefined ? guard === undefined : guard !== undefined && sameExpr(row.guard, guard)),
  )
  const name = same?.name ?? freshName(`${load.tensor}_${loop.index}`, context.taken)
  if (same === undefined) addLoadedRow(name, load, { loop, run, guard, shift }, context)
  return name
}
