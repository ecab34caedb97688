/**
 * Masks of scores. In a score `condition ? kept : low`, with `low` below every score, the condition selects the keys that a query attends to.
 * Conditions that bound the key by a value that is non-decreasing in the query's position become the key range, so that whole tiles of keys are
 * skipped: causal masks, windows, lengths, prompts after a cache. The other conditions stay in the score, as -Infinity.
 *
 *   score  j <= i && j < lengths[b] && documents[b, j] === documents[b, i] ? raw * factor : -1e30
 *   makes  range 0 <= j < min(i + 1, lengths[b]),  score documents[b, j] === documents[b, i] ? raw * factor : -Infinity
 */

import { hiddenBelow } from '../../ir/attention_reference.js'
import { call, constant, i32, index } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import { addLinear, type Linear, linearExpr, linearOf, termKey, trendOf } from '../../ir/linear.js'
import type { KeyRange } from '../../ir/template.js'
import { freeNames } from '../../ir/walk.js'

export interface Masked {
  readonly score: Expr
  /** Bounds of the keys, each non-decreasing in `i`; may be empty. */
  readonly lower: readonly Expr[]
  readonly upper: readonly Expr[]
}

/** Separates the masks from a score, an expression of `raw`, `b`, `h`, `i` and `j`. */
export function takeMasks(score: Expr): Masked {
  const conditions: Expr[] = []
  const kept = strip(score, conditions)
  const lower: Expr[] = []
  const upper: Expr[] = []
  const rest = conditions.filter((condition) => {
    const bound = boundOf(condition)
    if (bound === undefined) return true
    ;(bound.side === 'lower' ? lower : upper).push(bound.value)
    return false
  })
  const [first, ...more] = rest
  if (first === undefined) return { score: kept, lower, upper }
  const condition = more.reduce((left, right) => call('and', left, right), first)
  return { score: call('select', condition, kept, constant('f32', Number.NEGATIVE_INFINITY)), lower, upper }
}

/** Key range within the bounds: from 0 without a lower bound, to `keys` without an upper one. */
export const rangeOf = ({ lower, upper }: Pick<Masked, 'lower' | 'upper'>, keys: Expr): KeyRange => ({
  lower: lower.length === 0 ? i32(0) : lower.reduce((left, right) => call('maximum', left, right)),
  upper: upper.length === 0 ? keys : upper.reduce((left, right) => call('minimum', left, right)),
})

const isMaskValue = (expr: Expr): boolean => expr.kind === 'const' && expr.type === 'f32' && Number(expr.value) <= hiddenBelow
const isZero = (expr: Expr): boolean => expr.kind === 'const' && Number(expr.value) === 0

/** The score if all of its conditions hold; adds the conditions to the list. */
function strip(score: Expr, conditions: Expr[]): Expr {
  if (score.kind !== 'call') return score
  const [a, b, c] = score.args
  if (score.fn === 'select' && a && b && c) {
    if (isMaskValue(c)) conditions.push(...conjuncts(a, true))
    else if (isMaskValue(b)) conditions.push(...conjuncts(a, false))
    else return score
    return strip(isMaskValue(c) ? b : c, conditions)
  }
  if (score.fn !== 'add' || a === undefined || b === undefined) return score
  // An additive mask: 0 for a key that counts.
  const [left, right] = [takeAdditiveMask(a, conditions), takeAdditiveMask(b, conditions)]
  if (left && right) return constant('f32', 0)
  if (left) return strip(b, conditions)
  if (right) return strip(a, conditions)
  const [one, other] = [strip(a, conditions), strip(b, conditions)]
  return one === a && other === b ? score : call('add', one, other)
}

/** True if a term of a sum is `condition ? 0 : low`; adds its condition to the list. */
function takeAdditiveMask(term: Expr, conditions: Expr[]): boolean {
  if (term.kind !== 'call' || term.fn !== 'select') return false
  const [a, b, c] = term.args
  if (a === undefined || b === undefined || c === undefined) return false
  const holds = isZero(b) && isMaskValue(c)
  if (!holds && !(isMaskValue(b) && isZero(c))) return false
  conditions.push(...conjuncts(a, holds))
  return true
}

const negated: Partial<Record<IntrinsicName, IntrinsicName>> = { lt: 'ge', ge: 'lt', le: 'gt', gt: 'le', eq: 'ne', ne: 'eq' }

/** Conditions that together state that `condition` is `wanted`. Comparisons of floats are not inverted, since NaN compares false. */
function conjuncts(condition: Expr, wanted: boolean): readonly Expr[] {
  if (condition.kind === 'call') {
    const { fn, args } = condition
    const [a] = args
    if (fn === 'not' && a) return conjuncts(a, !wanted)
    if (fn === (wanted ? 'and' : 'or')) return args.flatMap((each) => conjuncts(each, wanted))
    const within = wanted ? splitAbsolute(condition) : undefined
    if (within !== undefined) return within.flatMap((each) => conjuncts(each, true))
    const opposite = negated[fn]
    if (!wanted && opposite !== undefined && a?.type === 'i32') return [{ ...condition, fn: opposite }]
  }
  return [wanted ? condition : call('not', condition)]
}

/** `|x| < y` as two comparisons without the absolute value. */
function splitAbsolute({ fn, args }: ExprOf<'call'>): readonly [Expr, Expr] | undefined {
  const [near, far] = fn === 'lt' || fn === 'le' ? args : [...args].reverse()
  if (!['lt', 'le', 'gt', 'ge'].includes(fn) || near?.kind !== 'call' || near.fn !== 'abs' || far === undefined) return undefined
  const [x] = near.args
  if (x?.type !== 'i32') return undefined
  const comparison = fn === 'lt' || fn === 'gt' ? 'lt' : 'le'
  return [call(comparison, x, far), call(comparison, call('neg', x), far)]
}

interface Bound {
  readonly side: 'lower' | 'upper'
  readonly value: Expr
}

/** Bound of the key that a comparison of integers states, if it is non-decreasing in `i`. */
function boundOf(condition: Expr): Bound | undefined {
  if (condition.kind !== 'call') return undefined
  if (condition.fn === 'or') return either(condition)
  const less = asNegativeForm(condition)
  const key = less?.terms.get(termKey(index('j')))
  if (less === undefined || key === undefined || Math.abs(key.factor) !== 1) return undefined
  const rest = addLinear(less, linearOf(index('j')), -key.factor)
  if ([...rest.terms.values()].some(({ expr }) => freeNames(expr).has('j'))) return undefined
  // j + rest < 0 bounds from above, rest - j < 0 from below.
  const value = key.factor === 1 ? linearExpr(addLinear({ terms: new Map(), constant: 0 }, rest, -1)) : linearExpr(plus(rest, 1))
  const trend = trendOf(value, 'i')
  if (trend !== 'constant' && trend !== 'rising') return undefined
  return { side: key.factor === 1 ? 'upper' : 'lower', value }
}

/** The looser of two bounds of one side, for a disjunction. */
function either({ args }: ExprOf<'call'>): Bound | undefined {
  const [one, other] = args.map(boundOf)
  if (one === undefined || other === undefined || one.side !== other.side) return undefined
  return { side: one.side, value: call(one.side === 'upper' ? 'maximum' : 'minimum', one.value, other.value) }
}

const plus = (form: Linear, constant: number): Linear => ({ ...form, constant: form.constant + constant })

/** A linear form that is negative exactly where the comparison of integers holds. */
function asNegativeForm({ fn, args: [a, b] }: ExprOf<'call'>): Linear | undefined {
  if (a?.type !== 'i32' || b?.type !== 'i32') return undefined
  const difference = addLinear(linearOf(a), linearOf(b), -1)
  const opposite = addLinear(linearOf(b), linearOf(a), -1)
  switch (fn) {
    case 'lt':
      return difference
    case 'le':
      return plus(difference, -1)
    case 'gt':
      return opposite
    case 'ge':
      return plus(opposite, -1)
    default:
      return undefined
  }
}
