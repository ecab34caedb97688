/**
 * Normalises the exponentials of a softmax: powers of another base, exponentials masked by 0, and exponents with a factor on the distance from a
 * row-uniform shift all become `exp(score - shift)`, where only the score depends on the key.
 */

import { hiddenBelow } from '../../ir/attention_reference.js'
import { call, constant, f32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { freeNames, rewrite } from '../../ir/walk.js'

export const dependsOn = (expr: Expr, loop: string): boolean => freeNames(expr).has(loop)

const negativeInfinity = constant('f32', Number.NEGATIVE_INFINITY)
const isZero = (expr: Expr): boolean => expr.kind === 'const' && Number(expr.value) === 0

/**
 * Rewrites `condition ? x / y : 0`, with a condition on the key, as `(condition ? x : 0) / y`. Undefined for expressions that are not such quotients
 * or products.
 */
export function maskedFactor(expr: Expr, loop: string): Expr | undefined {
  const [condition, kept, other] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  if (condition === undefined || kept === undefined || other === undefined || !dependsOn(condition, loop)) return undefined
  const isKept = isZero(other)
  const product = isKept ? kept : isZero(kept) ? other : undefined
  if (product?.kind !== 'call' || (product.fn !== 'mul' && product.fn !== 'div')) return undefined
  const [a, b] = product.args
  if (a === undefined || b === undefined) return undefined
  const zero = constant('f32', 0)
  const masked = (factor: Expr): Expr => call('select', condition, isKept ? factor : zero, isKept ? zero : factor)
  return dependsOn(a, loop) || product.fn === 'div' ? call(product.fn, masked(a), b) : call('mul', a, masked(b))
}

/**
 * The exponent of an exponential, of a power of a number, or of one of them where a condition holds and 0 elsewhere: 0 is the exponential of
 * -Infinity.
 */
export function exponentIn(expr: Expr): Expr | undefined {
  if (expr.kind !== 'call') return undefined
  const [a, b, c] = expr.args
  if (expr.fn === 'exp') return a
  if (expr.fn === 'pow' && a?.kind === 'const' && Number(a.value) > 0 && b !== undefined)
    return call('mul', b, f32(Math.log(Number(a.value))))
  if (expr.fn !== 'select' || a === undefined || b === undefined || c === undefined) return undefined
  const [kept, other] = [exponentIn(b), exponentIn(c)]
  if (kept !== undefined && isZero(c)) return call('select', a, kept, negativeInfinity)
  if (other !== undefined && isZero(b)) return call('select', a, negativeInfinity, other)
  return undefined
}

/** Splits an exponent into `score - shift`, where only the score depends on the key. */
export function shiftedScore(exponent: Expr, loop: string): { readonly score: Expr; readonly shift: Expr | undefined } {
  const shifts: Expr[] = []
  const score = peel(exponent, loop, shifts)
  const shift = shifts.length === 0 ? undefined : shifts.reduce((left, right) => call('add', left, right))
  return { score, shift }
}

/**
 * Returns a sum without the terms that contain reductions of the row; adds these terms, negated, to the list. Other row-uniform terms stay with the
 * score, since its maximum has them too.
 */
function peel(expr: Expr, loop: string, shifts: Expr[]): Expr {
  const [a, b, c] = expr.kind === 'call' ? expr.args : []
  if (expr.kind === 'call' && (expr.fn === 'mul' || expr.fn === 'div') && a !== undefined && b !== undefined) {
    // A row-uniform factor, such as a temperature, scales both the score and the shift.
    const [of, by] = dependsOn(a, loop) ? [a, b] : [b, a]
    if (dependsOn(by, loop) || (expr.fn === 'div' && of !== a)) return expr
    const inner: Expr[] = []
    const scaled = (each: Expr): Expr => (of === a ? call(expr.fn, each, by) : call(expr.fn, by, each))
    const left = peel(of, loop, inner)
    shifts.push(...inner.map(scaled))
    return left === of ? expr : scaled(left)
  }
  if (expr.kind === 'call' && expr.fn === 'select' && a !== undefined && b !== undefined && c !== undefined) {
    // A hidden key stays hidden after any subtraction.
    if (isMasked(c)) return call('select', a, peel(b, loop, shifts), c)
    return isMasked(b) ? call('select', a, b, peel(c, loop, shifts)) : expr
  }
  if (expr.kind !== 'call' || (expr.fn !== 'sub' && expr.fn !== 'add') || a === undefined || b === undefined) return expr
  const isShift = (term: Expr): boolean => !dependsOn(term, loop) && hasLocal(term)
  if (isShift(b)) {
    shifts.push(expr.fn === 'sub' ? b : call('neg', b))
    return peel(a, loop, shifts)
  }
  if (expr.fn === 'add' && isShift(a)) {
    shifts.push(call('neg', a))
    return peel(b, loop, shifts)
  }
  const [left, right] = [
    dependsOn(a, loop) ? peel(a, loop, shifts) : a,
    dependsOn(b, loop) && expr.fn === 'add' ? peel(b, loop, shifts) : b,
  ]
  return left === a && right === b ? expr : call(expr.fn, left, right)
}

const isMasked = (expr: Expr): boolean =>
  expr.kind === 'const' && expr.type === 'f32' && Number(expr.value) === Number.NEGATIVE_INFINITY

/** Unifies the constants of masks: the score of a hidden key becomes -Infinity. */
export const withMasksInfinite = (expr: Expr): Expr =>
  rewrite(expr, (node) =>
    node.kind === 'const' && node.type === 'f32' && Number(node.value) <= hiddenBelow ? negativeInfinity : node,
  )

export const hasLocal = (expr: Expr): boolean => {
  let found = false
  rewrite(expr, (node) => {
    found ||= node.kind === 'local'
    return node
  })
  return found
}
