/**
 * Conditions on places as inequalities of linear forms, so that their spelling does not matter: `j > 0`, `0 <= j - 1` and `!(j < 1)` are one. Used to
 * prove that places lie inside of a tensor, where windows are read in spans.
 */
import { call, dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import type { Kernel } from '../../ir/kernel.js'
import { type Linear, linearOf } from '../../ir/linear.js'
import { extentOf } from '../../ir/row_axis.js'
import { mapOperands } from '../../ir/walk.js'
import { rewriteWhere, sameExpr } from '../normalise/rewrite.js'

/** Inequalities that hold: of the terms of each, the least constant with which their sum is not negative. */
export type Known = ReadonlyMap<string, number>

const keyOf = ({ terms }: Linear): string =>
  [...terms]
    .map(([key, { factor }]) => `${factor} ${key}`)
    .sort()
    .join(' + ')

/** Conditions that hold together where one holds. */
export function conjuncts(e: Expr): readonly Expr[] {
  if (e.kind !== 'call') return [e]
  if (e.fn === 'and') return e.args.flatMap(conjuncts)
  const [denied] = e.fn === 'not' ? e.args : []
  if (denied?.kind !== 'call') return [e]
  if (denied.fn === 'not') return denied.args.flatMap(conjuncts)
  if (denied.fn === 'or') return denied.args.flatMap((arg) => conjuncts(call('not', arg)))
  const opposite = opposites[denied.fn]
  return opposite === undefined ? [e] : [{ ...denied, fn: opposite }]
}

const opposites: Partial<Record<IntrinsicName, IntrinsicName>> = { lt: 'ge', ge: 'lt', gt: 'le', le: 'gt' }

/** Sums that are not negative where a condition holds, and only there; undefined if it is no comparison of integers. */
export function sumsOf(condition: Expr): readonly Linear[] | undefined {
  if (condition.kind !== 'call') return undefined
  const [a, b] = condition.args
  if (a?.type !== 'i32' || b === undefined) return undefined
  const above = (x: Expr, y: Expr, by: number): Linear => linearOf(call('sub', call('sub', x, y), i32(by)))
  switch (condition.fn) {
    case 'ge':
      return [above(a, b, 0)]
    case 'gt':
      return [above(a, b, 1)]
    case 'le':
      return [above(b, a, 0)]
    case 'lt':
      return [above(b, a, 1)]
    case 'eq':
      return [above(a, b, 0), above(b, a, 0)]
    default:
      return undefined
  }
}

/** The inequalities with those of more conditions. */
export function knownWith(known: Known, conditions: readonly Expr[]): Known {
  const made = new Map(known)
  for (const sum of conditions.flatMap(conjuncts).flatMap((each) => sumsOf(each) ?? []))
    made.set(keyOf(sum), Math.min(sum.constant, made.get(keyOf(sum)) ?? sum.constant))
  return made
}

/** True if a sum is not negative: by an inequality, or since no part of it is. */
export function isNotNegative(sum: Linear, known: Known): boolean {
  const least = known.get(keyOf(sum))
  if (least !== undefined && sum.constant >= least) return true
  const parts = [...sum.terms.values()]
  return sum.constant >= 0 && parts.every(({ expr, factor }) => factor > 0 && (expr.kind === 'index' || expr.kind === 'dim'))
}

/** True if a condition follows from inequalities. */
export function follows(condition: Expr, known: Known): boolean {
  return conjuncts(condition).every((each) => {
    if (each.kind === 'const') return each.value === true
    return sumsOf(each)?.every((sum) => isNotNegative(sum, known)) === true
  })
}

/** Inequalities of the axes of a kernel: each is less than its extent, and a point of several places begins at one. */
export function knownOfAxes({ rows, computed = {} }: Kernel, fixed: Instance['dims'], more: readonly Expr[] = []): Known {
  const numberOr = (dim: string): Expr => {
    const known = getOwn(fixed, dim)
    return known === undefined ? dimVar(dim) : i32(known)
  }
  const conditions = rows.flatMap((axis): readonly Expr[] => {
    const [at, of] = [indexVar(axis.index), divisionOf(getOwn(computed, axis.dim))]
    const first = of && call('lt', call('mul', at, i32(of.count)), numberOr(of.dim))
    return [call('lt', at, extentOf(axis, numberOr)), ...(first === undefined ? [] : [first])]
  })
  return knownWith(new Map(), [...conditions, ...more])
}

/** A dimension that counts points of several places of another, rounded up. */
function divisionOf(extent: Expr | undefined): { readonly dim: string; readonly count: number } | undefined {
  const [sum, count] = extent?.kind === 'call' && extent.fn === 'idiv' ? extent.args : []
  if (sum === undefined || count?.kind !== 'const') return undefined
  const [of] = sum.kind === 'call' && sum.fn === 'add' ? sum.args : []
  const rounded = of && call('add', of, i32(Number(count.value) - 1))
  return of?.kind === 'dim' && rounded !== undefined && sameExpr(sum, rounded)
    ? { dim: of.name, count: Number(count.value) }
    : undefined
}

/** The expression without the clamps of places that lie within their bounds where they are read. */
export const withoutClamps = (e: Expr, known: Known): Expr =>
  rewriteWhere(
    e,
    () => true,
    (node, path) => {
      if (node.kind !== 'load' || path === undefined) return undefined
      const inside = knownWith(known, path)
      return { ...node, indices: node.indices.map((at) => unclamped(at, inside)) }
    },
  )

function unclamped(e: Expr, known: Known): Expr {
  const made = mapOperands(e, (operand) => unclamped(operand, known))
  if (made.kind !== 'call' || made.type !== 'i32') return made
  const [a, b, c] = made.args
  if (a === undefined || b === undefined) return made
  if (made.fn === 'select' && c !== undefined) return follows(a, known) ? b : made
  if (made.fn !== 'maximum' && made.fn !== 'minimum') return made
  const [more, less] = made.fn === 'maximum' ? [a, b] : [b, a]
  if (isNotNegative(linearOf(call('sub', more, less)), known)) return a
  return isNotNegative(linearOf(call('sub', less, more)), known) ? b : made
}
