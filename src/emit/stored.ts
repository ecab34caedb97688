/**
 * What a store does by itself need not be computed before it: a store to int8 rounds to nearest even and saturates to [-127, 127]
 * and one to uint8 saturates to [0, 255] (native/device/convert.cuh), so that saying so, as IR does (src/ir/store.ts), costs nothing.
 * Runs when a store is written.
 */

import type { Expr } from '../ir/expr.js'
import type { DTypeRef } from '../ir/kernel.js'
import { int8Range, uint8Range } from '../ir/store.js'

interface Range {
  readonly low: number
  readonly high: number
}

/** The expression without what a store to the type repeats. */
export const beforeStore = (value: Expr, dtype: DTypeRef): Expr =>
  dtype === 'i8' ? unrounded(value, int8Range) : dtype === 'u8' ? unrounded(value, uint8Range) : value

function unrounded(e: Expr, range: Range): Expr {
  if (e.kind !== 'call') return e
  const [a, b, c] = e.args
  if (a === undefined) return e
  if (e.fn === 'round') return unrounded(a, range)
  if (b === undefined) return e
  if (e.fn === 'minimum' && isBound(b, range.high)) return unrounded(a, range)
  if (e.fn === 'maximum' && isBound(b, range.low)) return unrounded(a, range)
  if (e.fn === 'select' && c !== undefined) return { ...e, args: [a, unrounded(b, range), unrounded(c, range)] }
  return e
}

const isBound = (e: Expr, bound: number): boolean => e.kind === 'const' && e.value === bound
