/**
 * Folds rounding and clamping into the store. A store to int8 rounds to nearest even, and one to int8, other small integers and 8-bit floats
 * saturates (native/device/convert.cuh). A body that states this explicitly, as the IR does (src/ir/store.ts), therefore costs nothing. Runs when a
 * store is emitted.
 */

import type { Expr } from '../../ir/expr.js'
import type { DTypeRef } from '../../ir/kernel.js'
import { type Range, storedRange } from '../../ir/store.js'

/** The expression without the rounding and clamping that a store to the type performs. */
export function beforeStore(value: Expr, dtype: DTypeRef): Expr {
  const range = typeof dtype === 'string' ? storedRange(dtype) : undefined
  return range === undefined ? value : unrounded(value, range, dtype === 'i8')
}

function unrounded(e: Expr, range: Range, rounds: boolean): Expr {
  if (e.kind !== 'call') return e
  const [a, b, c] = e.args
  if (a === undefined) return e
  if (e.fn === 'round' && rounds) return unrounded(a, range, rounds)
  if (b === undefined) return e
  if (e.fn === 'minimum' && isBound(b, range.high)) return unrounded(a, range, rounds)
  if (e.fn === 'maximum' && isBound(b, range.low)) return unrounded(a, range, rounds)
  if (e.fn === 'select' && c !== undefined) return { ...e, args: [a, unrounded(b, range, rounds), unrounded(c, range, rounds)] }
  return e
}

const isBound = (e: Expr, bound: number): boolean => e.kind === 'const' && e.value === bound
