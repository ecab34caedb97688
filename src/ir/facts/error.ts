/**
 * How functions and sums err, by abstract interpretation: of every value how its rounding errors add up on random numbers, and whether
 * small integers stay exact in float32. interpret.ts runs bodies over them.
 */
import type { IntrinsicName } from '../intrinsics.js'
import type { Count } from './facts.js'
import { either, fits, integer, joined, leaf, over, plus, times, unique, type Value } from './value.js'

/** What sums are assumed to be as long as, where only the bits they take matter. */
export const longSum = 2 ** 14

const called = (a: Value, changes: Partial<Value>): Value => ({
  ...a,
  exact: undefined,
  isStored: false,
  isMoved: false,
  isConstant: false,
  open: undefined,
  calls: true,
  isPositive: false,
  ...changes,
})

/** A choice, a place or a count, which is right where what it depends on is. */
export function decided(by: readonly Value[]): Value {
  const isStored = by.every((value) => value.isStored)
  const made = integer(longSum, 1)
  return isStored ? made : { ...made, isStored, exact: undefined }
}

const rounded = (a: Value, isWhole: boolean): Value => {
  const exact = a.exact && { bits: 0, size: a.exact.size }
  return { ...a, exact, isStored: exact !== undefined, isMoved: a.isMoved && isWhole, open: undefined }
}

const root = (a: Value): Value => ({
  ...called(a, { calls: a.calls, roundings: a.roundings + 1, isPositive: true }),
  magnitude: Math.sqrt(a.magnitude),
  absolute: a.absolute / Math.sqrt(Math.max(a.magnitude, 1e-30)),
})

const least = 1e-30

/** What a float operation makes of its operands. */
export function applied(fn: IntrinsicName, args: readonly Value[], isSame: boolean): Value {
  const [a, b = a, c = b] = args
  if (a === undefined || b === undefined || c === undefined) throw new Error(`internal: ${fn} has no operands`)
  switch (fn) {
    case 'add':
    case 'sub':
      return plus(a, fn === 'sub' ? { ...b, isPositive: false } : b)
    case 'mul':
      return times(a, b, isSame)
    case 'square':
      return times(a, a, true)
    case 'div':
      return over(a, b)
    case 'neg':
      return { ...a, isPositive: false }
    case 'abs':
      return { ...a, isPositive: true }
    case 'minimum':
      return either(a, b)
    case 'maximum':
      return { ...either(a, b), isPositive: a.isPositive || b.isPositive }
    case 'select':
      return either(b, c)
    case 'floor':
    case 'round':
    case 'toInt':
    case 'toFloat':
      return rounded(a, fn === 'toFloat')
    case 'sqrt':
      return root(a)
    case 'rsqrt': {
      const size = Math.max(a.magnitude, least)
      const absolute = a.absolute / size ** 1.5
      return { ...called(a, { isPositive: true }), magnitude: 1 / Math.sqrt(size), absolute, steep: a.steep || a.absolute > 0 }
    }
    case 'exp':
      // Errors of an exponent are relative errors of the result.
      return called(a, { magnitude: 1, absolute: 0, isPositive: true })
    case 'log':
      return called(a, {
        magnitude: 1,
        absolute: Math.max(1, a.absolute / Math.max(a.magnitude, least)),
        steep: a.steep || a.absolute > 0,
      })
    case 'gelu':
      return called(a, { absolute: Math.max(a.absolute, 1) })
    case 'pow':
      return called({ ...joined(a, b), ...a }, { isPositive: a.isPositive, absolute: Math.max(a.absolute, b.absolute) })
    case 'uniform':
      return called(a, { ...leaf([1], 1, true), exact: undefined, isStored: false })
    case 'lt':
    case 'le':
    case 'gt':
    case 'ge':
    case 'eq':
    case 'ne':
    case 'and':
    case 'or':
    case 'not':
    case 'idiv':
    case 'mod':
    case 'bitAnd':
    case 'bitOr':
    case 'shiftLeft':
    case 'shiftRight':
      return decided(args)
    default:
      return called(a, { magnitude: 1, absolute: Math.max(a.absolute, 1) })
  }
}

/** The sum of so many values. */
export function summed(a: Value, length: Count): Value {
  const exact = a.exact && fits(a.exact.bits, a.exact.size * longSum)
  // A sum of many products is a normal number again, and one of positive terms is about the same in every row.
  const base = { ...a, exact, factors: 1, isStored: exact !== undefined, isMoved: false, isConstant: false, roundings: 0 }
  if (a.isPositive) return { ...base, factors: 0, sums: unique(a.sums, [length]), open: undefined }
  return { ...base, products: unique(a.products, [length]), absolute: Math.max(a.absolute, a.magnitude), open: length }
}

/** A sum of either sign divided by a number of elements: a mean, which errs as little as a sum of terms of one sign. */
export function mean(a: Value): Value {
  const { open } = a
  const inexact = { exact: undefined, isStored: false, isMoved: false, roundings: a.roundings + 1 }
  if (open === undefined) return { ...a, ...inexact }
  const products = a.products.filter((count) => JSON.stringify(count) !== JSON.stringify(open))
  return { ...a, ...inexact, factors: 0, products, sums: unique(a.sums, [open]), open: undefined }
}
