/**
 * Abstract values of floats computed from random numbers: number of roundings, lengths of sums, magnitude, exactness on small
 * integers. This file has leaves and the four operations; error.ts has functions and sums, interpret.ts interprets bodies.
 */
import type { Count } from './facts.js'

/** Abstract value of a float. Magnitudes are those of typical values: a random input has magnitude 1. */
export interface Value {
  /** Exactness on small integers: a multiple of 2^-bits of at most this size, which is exact in float32; undefined if unknown. */
  readonly exact: { readonly bits: number; readonly size: number; readonly isPower?: boolean } | undefined
  /** True if it is a float32 number on small integers: exact, or an unchanged element or constant. */
  readonly isStored: boolean
  /** True if nothing was computed: an unchanged element or constant. */
  readonly isMoved: boolean
  readonly isConstant?: boolean
  readonly roundings: number
  /** True if a function of the device's library contributed. */
  readonly calls: boolean
  /** Lengths of sums of terms of one sign or means (`sums`), and of sums of terms of either sign (`products`). */
  readonly sums: readonly Count[]
  readonly products: readonly Count[]
  readonly magnitude: number
  /** Largest integer factor in it, which the terms of a sum may share, as that of their row; 1 without any. */
  readonly factor?: number | undefined
  /** Exponent of the root of the sum length in that factor: 2 for an index. */
  readonly factorRoots?: number | undefined
  /** Exponent of the root of the sum length in the magnitude: a sum of terms of either sign is that root larger than one of them. */
  readonly roots: number
  /** The sums that make it grow: two factors with the same sources are powers of one number. */
  readonly sources: ReadonlySet<object>
  /** Number of random numbers in its product. */
  readonly factors: number
  /** Size of the terms that cancelled, with which absolute errors scale; 0 if none did. */
  readonly absolute: number
  /** Exponent of the root of the sum length in `absolute`, as for an error of one sum that is multiplied by another sum. */
  readonly absoluteRoots: number
  readonly isPositive: boolean
  /** True if it was divided by a value that may vanish. */
  readonly steep: boolean
  /** Number of terms, of either sign, if the last operation was a sum, which a division by their number makes a mean. */
  readonly open?: Count | undefined
}

const single = 24
export const fits = (bits: number, size: number): Value['exact'] =>
  bits + Math.log2(Math.max(size, 1)) <= single ? { bits, size } : undefined

/** Number of binary fraction digits; undefined if there are more than 10. */
function bitsOf(value: number): number | undefined {
  for (let bits = 0; bits <= 10; bits++) if (Number.isInteger(value * 2 ** bits)) return bits
  return undefined
}

const isPowerOfTwo = (value: number): boolean =>
  value !== 0 && Number.isFinite(value) && Number.isInteger(Math.log2(Math.abs(value)))

/** An input or a constant with these values; random ones have that magnitude. */
export function leaf(values: readonly number[], magnitude: number, isPositive = false): Value {
  const bits = values.map(bitsOf)
  const known = bits.every((each) => each !== undefined) && values.every(Number.isFinite)
  const size = Math.max(...values.map(Math.abs))
  const exact = known ? fits(Math.max(0, ...bits.flatMap((each) => each ?? [])), size) : undefined
  return {
    exact: exact === undefined || !values.every(isPowerOfTwo) ? exact : { ...exact, isPower: true },
    isStored: true,
    isMoved: true,
    roundings: 0,
    calls: false,
    sums: [],
    products: [],
    magnitude,
    roots: 0,
    sources: new Set(),
    factors: 1,
    absolute: 0,
    absoluteRoots: 0,
    isPositive: isPositive || values.every((value) => value > 0),
    steep: false,
  }
}

/** An integer of at most that size. */
export const integer = (size: number, magnitude: number): Value => ({
  ...leaf([1], magnitude),
  exact: fits(0, size),
  isPositive: false,
})

export const unique = (a: readonly Count[], b: readonly Count[]): readonly Count[] => [
  ...new Map([...a, ...b].map((count) => [JSON.stringify(count), count])).values(),
]

/** A literal of a body. NaN and infinities, which mark missing values, do not affect the size of others. */
export function constant(value: number): Value {
  const size = Number.isFinite(value) ? value : 0
  return { ...leaf([size], Math.abs(size)), factors: 0, isConstant: true }
}

/** Fields that every combination of two values inherits from both. */
export const joined = (a: Value, b: Value) => ({
  isConstant: a.isConstant === true && b.isConstant === true,
  calls: a.calls || b.calls,
  sums: unique(a.sums, b.sums),
  products: unique(a.products, b.products),
  factors: Math.max(a.factors, b.factors),
  sources: new Set([...a.sources, ...b.sources]),
  steep: a.steep || b.steep,
  factor: Math.max(a.factor ?? 1, b.factor ?? 1),
  factorRoots: Math.max(a.factorRoots ?? 0, b.factorRoots ?? 0),
  isMoved: false,
  open: undefined,
})

/** A size that may grow with the length of sums. */
type Growing = readonly [size: number, roots: number]

/** The largest size: that of the fastest growth, and the larger one for equal growth. 0 is smaller than any other size. */
export const largest = (sizes: readonly Growing[]): Growing =>
  sizes.reduce<Growing>(
    (a, b) => (b[0] === 0 || (a[0] !== 0 && a[1] > b[1]) ? a : a[0] === 0 || b[1] > a[1] ? b : [Math.max(a[0], b[0]), a[1]]),
    [0, 0],
  )

export const sizeOf = ({ magnitude, roots }: Value): Growing => [magnitude, roots]
export const errorOf = ({ absolute, absoluteRoots }: Value): Growing => [absolute, absoluteRoots]

/** Either of two values. */
export function either(a: Value, b: Value): Value {
  const exact = a.exact && b.exact && fits(Math.max(a.exact.bits, b.exact.bits), Math.max(a.exact.size, b.exact.size))
  // A constant alternative does not affect the size: the number that masks a score is huge.
  const varying = [a, b].filter(({ isConstant }) => isConstant !== true)
  const [magnitude, roots] = largest((varying.length === 0 ? [a, b] : varying).map(sizeOf))
  const [absolute, absoluteRoots] = largest([a, b].map(errorOf))
  return {
    ...joined(a, b),
    exact,
    isStored: a.isStored && b.isStored,
    isMoved: a.isMoved && b.isMoved,
    roundings: Math.max(a.roundings, b.roundings),
    magnitude,
    roots,
    absolute,
    absoluteRoots,
    isPositive: a.isPositive && b.isPositive,
  }
}

/**
 * Size of the largest of many such values, relative to that of products of two, for which the bounds of elementwise results are designed. Of ten
 * thousand normal numbers the largest is 3.9, of products of two, three and four of them 7.6, 13 and 19.
 */
const tailOf = ({ factors }: Value): number => 2 ** Math.max(0, factors - 2)

/** True for functions of the same number: if the result is large, the relative error bound covers them, and if it is small nothing grows. */
const areOfOne = (a: Value, b: Value): boolean =>
  a.sources.size === b.sources.size && [...a.sources].every((source) => b.sources.has(source))

export function plus(a: Value, b: Value): Value {
  const exact = a.exact && b.exact && fits(Math.max(a.exact.bits, b.exact.bits), a.exact.size + b.exact.size)
  const isPositive = a.isPositive && b.isPositive
  const [magnitude, roots] = largest([a, b].map(sizeOf))
  // One rounding of a sum is less than those of the sum's own terms, whose number is its root squared.
  const terms = [a, b].map((each): Growing => [each.magnitude * tailOf(each), areOfOne(a, b) ? 0 : Math.max(0, each.roots - 2)])
  const [absolute, absoluteRoots] = largest([...[a, b].map(errorOf), ...(isPositive ? [] : terms)])
  return {
    ...joined(a, b),
    exact,
    isStored: exact !== undefined,
    roundings: Math.max(a.roundings, b.roundings) + 1,
    magnitude,
    roots,
    absolute,
    absoluteRoots,
    isPositive,
  }
}

export function times(a: Value, b: Value, isSquare = false): Value {
  const exact = a.exact && b.exact && fits(a.exact.bits + b.exact.bits, a.exact.size * b.exact.size)
  const isPower = areOfOne(a, b)
  const [absolute, absoluteRoots] = largest([
    [a.absolute * b.magnitude, a.absoluteRoots + (isPower ? 0 : b.roots)],
    [b.absolute * a.magnitude, b.absoluteRoots + (isPower ? 0 : a.roots)],
  ])
  return {
    ...joined(a, b),
    factor: (a.factor ?? 1) * (b.factor ?? 1),
    factorRoots: (a.factorRoots ?? 0) + (b.factorRoots ?? 0),
    exact,
    isStored: exact !== undefined,
    roundings: a.roundings + b.roundings + 1,
    magnitude: a.magnitude * b.magnitude,
    roots: a.roots + b.roots,
    factors: isSquare ? a.factors : a.factors + b.factors,
    absolute,
    absoluteRoots,
    isPositive: isSquare || (a.isPositive && b.isPositive),
  }
}

export function over(a: Value, b: Value): Value {
  const exact = a.exact && b.exact?.isPower === true ? fits(a.exact.bits + 10, a.exact.size * 2 ** b.exact.bits) : undefined
  const size = Math.max(b.magnitude, 1e-30)
  const [absolute, absoluteRoots] = largest([
    [a.absolute / size, a.absoluteRoots - b.roots],
    [(b.absolute * a.magnitude) / size ** 2, b.absoluteRoots + a.roots - 2 * b.roots],
  ])
  return {
    ...joined(a, b),
    exact,
    isStored: exact !== undefined,
    roundings: a.roundings + b.roundings + 1,
    magnitude: a.magnitude / size,
    roots: a.roots - b.roots,
    absolute,
    absoluteRoots,
    isPositive: a.isPositive && b.isPositive,
    // A value after cancellation may be 0.
    steep: a.steep || b.steep || b.absolute > 0,
  }
}
