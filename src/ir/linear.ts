/**
 * Linear forms of integer expressions: sums of terms times constants. Bounds are derived from conditions in this form, so that their
 * spelling does not matter: `j <= i` and `!(i - j < 0)` give the same bound of j.
 */
import { call, i32 } from './build.js'
import type { Expr } from './expr.js'
import { plainExpr } from './print.js'
import { freeNames } from './walk.js'

/** The sum of `factor` times each term, and a constant. A term is not a sum itself. */
export interface Linear {
  readonly terms: ReadonlyMap<string, { readonly expr: Expr; readonly factor: number }>
  readonly constant: number
}

const isZero = ({ factor }: { readonly factor: number }): boolean => factor === 0

/** `a + factor * b`. */
export function addLinear(a: Linear, b: Linear, factor = 1): Linear {
  const terms = new Map(a.terms)
  for (const [key, term] of b.terms) {
    const sum = { expr: term.expr, factor: (terms.get(key)?.factor ?? 0) + factor * term.factor }
    if (isZero(sum)) terms.delete(key)
    else terms.set(key, sum)
  }
  return { terms, constant: a.constant + factor * b.constant }
}

/** Key of a term in a linear form. */
export const termKey = (expr: Expr): string => `${expr.kind} ${plainExpr(expr)}`

const zero: Linear = { terms: new Map(), constant: 0 }

/** Linear form of an integer expression. Anything but a sum, a difference or a product with a constant becomes one term. */
export function linearOf(expr: Expr): Linear {
  if (expr.kind === 'const') return { ...zero, constant: Number(expr.value) }
  if (expr.kind === 'call') {
    const [a, b] = expr.args
    if (expr.fn === 'add' && a && b) return addLinear(linearOf(a), linearOf(b))
    if (expr.fn === 'sub' && a && b) return addLinear(linearOf(a), linearOf(b), -1)
    if (expr.fn === 'neg' && a) return addLinear(zero, linearOf(a), -1)
    if (expr.fn === 'mul' && a && b) {
      const [left, right] = [linearOf(a), linearOf(b)]
      if (left.terms.size === 0) return addLinear(zero, right, left.constant)
      if (right.terms.size === 0) return addLinear(zero, left, right.constant)
    }
  }
  return { terms: new Map([[termKey(expr), { expr, factor: 1 }]]), constant: 0 }
}

/** The expression of a linear form: positive terms first, then the subtracted ones. */
export function linearExpr({ terms, constant }: Linear): Expr {
  const scaled = ({ expr, factor }: { readonly expr: Expr; readonly factor: number }): Expr =>
    Math.abs(factor) === 1 ? expr : call('mul', expr, i32(Math.abs(factor)))
  const all = [...terms.values()]
  const added = all.filter(({ factor }) => factor > 0).map(scaled)
  const taken = all.filter(({ factor }) => factor < 0).map(scaled)
  const positive =
    constant > 0 || added.length === 0 ? [...added, ...(constant >= 0 || added.length === 0 ? [i32(constant)] : [])] : added
  const sum = positive.reduce((left, right) => (isConstZero(right) ? left : call('add', left, right)))
  const rest = constant < 0 && added.length > 0 ? [...taken, i32(-constant)] : taken
  return rest.reduce((left, right) => call('sub', left, right), sum)
}

const isConstZero = (expr: Expr): boolean => expr.kind === 'const' && expr.value === 0

/** Monotonicity of an integer expression in one index, everything else fixed. */
export type Trend = 'constant' | 'rising' | 'falling' | 'unknown'

const opposite: Readonly<Record<Trend, Trend>> = {
  constant: 'constant',
  rising: 'falling',
  falling: 'rising',
  unknown: 'unknown',
}

const joined = (a: Trend, b: Trend): Trend => (a === 'constant' ? b : b === 'constant' || a === b ? a : 'unknown')

/** True if an expression is known not to be negative: a constant, an extent, or a sum or product of these. */
const isPositive = (expr: Expr): boolean =>
  (expr.kind === 'const' && Number(expr.value) >= 0) ||
  expr.kind === 'dim' ||
  (expr.kind === 'call' && (expr.fn === 'add' || expr.fn === 'mul') && expr.args.every(isPositive))

/** Trend of an integer expression in an index: `rising` if it never falls, `falling` if it never rises. */
export function trendOf(expr: Expr, index: string): Trend {
  if (!freeNames(expr).has(index)) return 'constant'
  if (expr.kind === 'index') return 'rising'
  if (expr.kind !== 'call') return 'unknown'
  const [a, b] = expr.args
  if (a === undefined) return 'unknown'
  const left = trendOf(a, index)
  if (expr.fn === 'neg') return opposite[left]
  if (b === undefined) return 'unknown'
  const right = trendOf(b, index)
  switch (expr.fn) {
    case 'add':
    case 'maximum':
    case 'minimum':
      return joined(left, right)
    case 'sub':
      return joined(left, opposite[right])
    case 'mul':
      if (isPositive(b)) return left
      return isPositive(a) ? right : 'unknown'
    case 'idiv':
      return isPositive(b) ? left : 'unknown'
    default:
      return 'unknown'
  }
}
