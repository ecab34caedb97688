/**
 * Reductions over few places, written out. A loop of a known number of steps costs a test per step, and the index of a step stays unknown: written out,
 * places are constants, equal conditions and loads have equal hashes, and integer sums of one place are one. Used by the pass that gives a thread
 * several places of a window (several_places.ts).
 *
 *     sum(p < 3: x[i + p - 1])    x[i - 1] + x[i] + x[i + 1]
 */
import { call, constant, i32 } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import type { RowAxis } from '../../ir/kernel.js'
import { linearExpr, linearOf } from '../../ir/linear.js'
import { mapOperands, substitute } from '../../ir/walk.js'
import { rewriteDown } from '../normalise/rewrite.js'

/** Most steps of one reduction, and most loads of an element, that are written out. */
const mostSteps = 16
export const mostLoads = 64

/** Combination of two elements; others have loops. */
const combining: Partial<Record<string, IntrinsicName>> = { sum: 'add', max: 'maximum', min: 'minimum' }

/** Steps of a reduction, as far as they are known and few. @param numberOf a length as a number */
export function stepsOf({ length, monoid }: ExprOf<'fold'>, numberOf: (length: Expr) => number | undefined): number | undefined {
  const steps = numberOf(length)
  return steps !== undefined && steps >= 1 && steps <= mostSteps && combining[monoid] !== undefined ? steps : undefined
}

/** The expression with reductions over few places written out, from the outside in. */
export const writtenOut = (e: Expr, numberOf: (length: Expr) => number | undefined): Expr =>
  rewriteDown(e, (node) => {
    if (node.kind !== 'fold') return undefined
    const steps = stepsOf(node, numberOf)
    const combine = combining[node.monoid]
    if (steps === undefined || combine === undefined) return { ...node, value: writtenOut(node.value, numberOf) }
    const values = Array.from({ length: steps }, (_, step) =>
      writtenOut(substitute(node.value, new Map([[node.index, i32(step)]])), numberOf),
    )
    return values.reduce((all, value) => call(combine, all, value))
  })

/**
 * The expression with integer sums in one form, and without conditions that are known.
 * @param axis an index that is less than a dimension, if any
 */
export function simplified(e: Expr, axis?: Pick<RowAxis, 'index' | 'dim'>): Expr {
  const known = new Map<Expr, Expr>()
  const go = (node: Expr): Expr => {
    const found = known.get(node)
    if (found !== undefined) return found
    const made = simplifiedOnce(mapOperands(node, go), axis)
    known.set(node, made)
    return made
  }
  return go(e)
}

const sums: ReadonlySet<IntrinsicName> = new Set(['add', 'sub', 'mul', 'neg'])

/** Comparisons of numbers. */
const compared: Partial<Record<IntrinsicName, (a: number, b: number) => boolean>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
}

/** True for a sum of indices and extents, none of which is negative. */
function isNotNegative(e: Expr): boolean {
  const { terms, constant: rest } = linearOf(e)
  return (
    rest >= 0 && [...terms.values()].every(({ expr, factor }) => factor > 0 && (expr.kind === 'index' || expr.kind === 'dim'))
  )
}

/** Quotients and remainders of numbers. */
const divided: Partial<Record<IntrinsicName, (a: number, b: number) => number>> = {
  idiv: (a, b) => Math.trunc(a / b),
  mod: (a, b) => a % b,
}

function simplifiedOnce(e: Expr, axis: Pick<RowAxis, 'index' | 'dim'> | undefined): Expr {
  if (e.kind !== 'call') return e
  const [a, b, c] = e.args
  const divide = divided[e.fn]
  if (divide !== undefined && e.type === 'i32' && a?.kind === 'const' && b?.kind === 'const' && Number(b.value) > 0)
    return i32(divide(Number(a.value), Number(b.value)))
  if (e.fn === 'ge' && a?.type === 'i32' && b?.kind === 'const' && b.value === 0 && isNotNegative(a))
    return constant('bool', true)
  if (e.fn === 'lt' && a?.kind === 'index' && a.name === axis?.index && b?.kind === 'dim' && b.name === axis.dim)
    return constant('bool', true)
  if (e.type === 'i32' && sums.has(e.fn)) return linearExpr(linearOf(e))
  const compare = compared[e.fn]
  if (compare !== undefined && a?.kind === 'const' && b?.kind === 'const' && a.type === 'i32' && b.type === 'i32')
    return constant('bool', compare(Number(a.value), Number(b.value)))
  if (e.fn === 'and' && a?.kind === 'const' && b !== undefined) return a.value === true ? b : a
  if (e.fn === 'and' && b?.kind === 'const' && b.value === true && a !== undefined) return a
  if (e.fn === 'or' && a?.kind === 'const' && b !== undefined) return a.value === true ? a : b
  if (e.fn === 'not' && a?.kind === 'const') return constant('bool', a.value !== true)
  if (e.fn === 'select' && a?.kind === 'const' && b !== undefined && c !== undefined) return a.value === true ? b : c
  return e
}
