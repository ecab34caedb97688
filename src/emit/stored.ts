/**
 * What a store does by itself need not be computed before it: a store to int8 rounds to nearest even and saturates to [-127, 127]
 * (native/device/convert.cuh), so that a body which says so, as its oracle must, costs nothing. Runs when a store is written.
 */

import type { Expr } from '../ir/expr.js'
import type { DTypeRef } from '../ir/kernel.js'

const largest = 127

/** The expression without what a store to the type repeats. */
export const beforeStore = (value: Expr, dtype: DTypeRef): Expr => (dtype === 'i8' ? unrounded(value) : value)

function unrounded(e: Expr): Expr {
  if (e.kind !== 'call') return e
  const [a, b, c] = e.args
  if (a === undefined) return e
  if (e.fn === 'round') return unrounded(a)
  if (b === undefined) return e
  if (e.fn === 'minimum' && isBound(b, largest)) return unrounded(a)
  if (e.fn === 'maximum' && isBound(b, -largest)) return unrounded(a)
  if (e.fn === 'select' && c !== undefined) return { ...e, args: [a, unrounded(b), unrounded(c)] }
  return e
}

const isBound = (e: Expr, bound: number): boolean => e.kind === 'const' && e.value === bound
