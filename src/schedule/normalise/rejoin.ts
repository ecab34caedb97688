/**
 * Offsets of several axes that a body walks as one: `x(idiv(e, n), e % n)` lies at `idiv(e, n) * n + e % n`, which is `e`. Rejoined, such a walk is
 * contiguous like that of a single axis. Quotient and remainder truncate alike, so this holds for every integer.
 */
import { call } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { rewrite } from '../../ir/walk.js'
import { sameExpr } from './rewrite.js'

/** The same offset, with each quotient and remainder of one number that are next to each other rejoined. */
export const rejoin = (offset: Expr): Expr =>
  rewrite(offset, (node) => {
    if (node.kind !== 'call' || node.fn !== 'add') return node
    const [a, b] = node.args
    if (a === undefined || b === undefined) return node
    return joined(a, b) ?? joined(b, a) ?? node
  })

/** `(rest + idiv(e, q)) * q` and `e % q` as `rest * q + e`. */
function joined(product: Expr, remainder: Expr): Expr | undefined {
  if (product.kind !== 'call' || product.fn !== 'mul' || remainder.kind !== 'call' || remainder.fn !== 'mod') return undefined
  const [of, by] = remainder.args
  const [a, b] = product.args
  if (of === undefined || by === undefined || a === undefined || b === undefined) return undefined
  const quotient = call('idiv', of, by)
  const [sum, factor] = sameExpr(b, by) ? [a, b] : [b, a]
  if (!sameExpr(factor, by)) return undefined
  if (sameExpr(sum, quotient)) return of
  const rest = without(sum, quotient)
  return rest && call('add', call('mul', rest, factor), of)
}

/** A sum without one of its terms; undefined if it has no such term. */
function without(sum: Expr, term: Expr): Expr | undefined {
  const [a, b] = sum.kind === 'call' && sum.fn === 'add' ? sum.args : []
  if (a === undefined || b === undefined) return undefined
  if (sameExpr(a, term)) return b
  if (sameExpr(b, term)) return a
  const left = without(a, term)
  if (left !== undefined) return call('add', left, b)
  const right = without(b, term)
  return right && call('add', a, right)
}
