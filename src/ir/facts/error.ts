/**
 * Error propagation of functions and sums, by abstract interpretation: for every value the accumulated rounding error on random numbers,
 * and exactness of small integers in float32. interpret.ts interprets bodies with it.
 */
import type { ExprOf } from '../expr.js'
import { fastForm, isFast } from '../forms.js'
import type { IntrinsicName } from '../intrinsics.js'
import type { Count } from './facts.js'
import { either, errorOf, fits, integer, joined, largest, leaf, over, plus, sizeOf, times, unique, type Value } from './value.js'

/** Assumed length of sums, where only the number of their bits matters. */
export const longSum = 2 ** 14

const called = (a: Value, changes: Partial<Value>): Value => ({
  ...a,
  exact: undefined,
  isStored: false,
  isMoved: false,
  isConstant: false,
  open: undefined,
  factor: undefined,
  factorRoots: undefined,
  calls: true,
  isPositive: false,
  ...changes,
})

/** A choice, a position or a count, which is exact if its operands are. */
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
  roots: a.roots / 2,
  absolute: a.absolute / Math.sqrt(Math.max(a.magnitude, 1e-30)),
  absoluteRoots: a.absoluteRoots - a.roots / 2,
})

const least = 1e-30

const asError = ([absolute, absoluteRoots]: ReturnType<typeof errorOf>) => ({ absolute, absoluteRoots })
const atLeastOne = (error: ReturnType<typeof errorOf>) => asError(largest([error, [1, 0]]))

/** Comparisons and integer operations, whose results are exact if their operands are. */
const decisions: ReadonlySet<IntrinsicName> = new Set([
  ...(['lt', 'le', 'gt', 'ge', 'eq', 'ne', 'and', 'or', 'not', 'idiv', 'mod'] as const),
  ...(['bitAnd', 'bitOr', 'bitXor', 'wrappingAdd', 'wrappingMul'] as const),
  ...(['shiftRightUnsigned', 'shiftLeft', 'shiftRight'] as const),
])

/** Value of an operation, from its operands. */
export function applied(fn: IntrinsicName, args: readonly Value[], isSame: boolean): Value {
  const [a, b = a, c = b] = args
  if (a === undefined || b === undefined || c === undefined) throw new Error(`internal: ${fn} has no operands`)
  if (decisions.has(fn)) return decided(args)
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
    case 'ceil':
    case 'trunc':
    case 'round':
    case 'toInt':
    case 'toFloat':
      return rounded(a, fn === 'toFloat')
    case 'bitsOf':
      return { ...decided(args), exact: undefined }
    case 'pow':
      return called({ ...joined(a, b), ...a }, { isPositive: a.isPositive, ...asError(largest([a, b].map(errorOf))) })
    default:
      return functionOf(fn, a)
  }
}

/** Value of an operation in its form: a fast one is a function of the device, with the roundings of its row. */
export function inForm({ fn, form }: Pick<ExprOf<'call'>, 'fn' | 'form'>, made: Value, [a]: readonly Value[]): Value {
  const fast = isFast(form) ? fastForm(fn) : undefined
  if (fast === undefined) return made
  const roundings = made.roundings + fast.typical(a?.magnitude ?? 1)
  return { ...made, exact: undefined, isStored: false, isMoved: false, calls: true, roundings }
}

const rootReciprocal = (a: Value): Value => {
  const size = Math.max(a.magnitude, least)
  return {
    ...called(a, { isPositive: true }),
    magnitude: 1 / Math.sqrt(size),
    roots: -a.roots / 2,
    absolute: a.absolute / size ** 1.5,
    absoluteRoots: a.absoluteRoots - 1.5 * a.roots,
    steep: a.steep || a.absolute > 0,
  }
}

/** Value of a library function of one operand. */
function functionOf(fn: IntrinsicName, a: Value): Value {
  switch (fn) {
    case 'sqrt':
      return root(a)
    case 'rsqrt':
      return rootReciprocal(a)
    case 'exp':
    case 'exp2':
      // Errors of an exponent are relative errors of the result.
      return called(a, { magnitude: 1, roots: 0, absolute: 0, absoluteRoots: 0, isPositive: true })
    case 'log':
    case 'log2':
    case 'log10': {
      const moved = [a.absolute / Math.max(a.magnitude, least), a.absoluteRoots - a.roots] as const
      return called(a, { magnitude: 1, roots: 0, ...atLeastOne(moved), steep: a.steep || a.absolute > 0 })
    }
    case 'sin':
    case 'cos':
      // A rounding of a large angle is a fraction of a period.
      return called(a, { magnitude: 1, roots: 0, ...atLeastOne(largest([errorOf(a), ...(a.isStored ? [] : [sizeOf(a)])])) })
    case 'gelu':
      return called(a, atLeastOne(errorOf(a)))
    case 'floatOfBits':
      // Any number; bits that were only copied give an exact float32.
      return called(a, { ...leaf([0.1], 1), isStored: a.isStored, calls: a.calls, exact: undefined })
    case 'uniform':
      return called(a, { ...leaf([1], 1, true), exact: undefined, isStored: false })
    default:
      return called(a, { magnitude: 1, roots: 0, ...atLeastOne(errorOf(a)) })
  }
}

/** Sum of `length` values. */
export function summed(a: Value, length: Count): Value {
  const exact = a.exact && fits(a.exact.bits, a.exact.size * longSum)
  // A sum of many products is normally distributed again, and a sum of positive terms is about the same in every row.
  const base = { ...a, exact, factors: 1, isStored: exact !== undefined, isMoved: false, isConstant: false, roundings: 0 }
  if (a.isPositive) return { ...base, factors: 0, sums: unique(a.sums, [length]), open: undefined }
  return {
    ...base,
    products: unique(a.products, [length]),
    roots: a.roots + 1,
    sources: new Set([{}]),
    ...asError(largest([errorOf(a), [a.magnitude * Math.max(1, a.factor ?? 1), a.roots + (a.factorRoots ?? 0)]])),
    open: length,
  }
}

/** A sum of either sign divided by a number of elements: a mean, whose error is as small as that of a sum of terms of one sign. */
export function mean(a: Value): Value {
  const { open } = a
  const inexact = { exact: undefined, isStored: false, isMoved: false, roundings: a.roundings + 1 }
  if (open === undefined) return { ...a, ...inexact }
  const products = a.products.filter((count) => JSON.stringify(count) !== JSON.stringify(open))
  return { ...a, ...inexact, roots: a.roots - 1, factors: 0, products, sums: unique(a.sums, [open]), open: undefined }
}
