/**
 * Folds rounding and clamping into the store: a store to int8 rounds to nearest even and saturates to [-127, 127]
 * (native/device/convert.cuh), so a body that rounds and clamps first, as it must, pays nothing for it. Runs when a store is written.
 */

import type { Expr } from '../ir/expr.js'
import type { DTypeRef } from '../ir/kernel.js'

const largest = 127

/** The expression without the rounding and clamping that a store to the type does. */
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
