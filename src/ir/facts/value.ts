/**
 * A float as what has become of random numbers: how often it was rounded, what was added up, how large it is, whether small integers are
 * exact. Here are leaves and the four operations; error.ts has functions and sums, interpret.ts runs bodies over them.
 */
import type { Count } from './facts.js'

/** A float, or what has become of one. Magnitudes are those of typical values: an input drawn at random is 1. */
export interface Value {
  /** On small integers: a multiple of 2^-bits of at most this size, so that float32 has it exactly; undefined where it need not. */
  readonly exact: { readonly bits: number; readonly size: number; readonly isPower?: boolean } | undefined
  /** On small integers it is a float32 number: exact, or an element or constant as it is. */
  readonly isStored: boolean
  /** Nothing was computed: an element or a constant as it is. */
  readonly isMoved: boolean
  readonly isConstant?: boolean
  readonly roundings: number
  /** True if a function of the device's library took part. */
  readonly calls: boolean
  /** Lengths of sums: of terms of one sign or a mean, and of terms of either sign. */
  readonly sums: readonly Count[]
  readonly products: readonly Count[]
  readonly magnitude: number
  /** How often the magnitude grows with the root of the length of sums: a sum of terms of either sign is that much larger than one of them. */
  readonly roots: number
  /** The sums that make it grow: two factors with the same are powers of one number. */
  readonly sources: ReadonlySet<object>
  /** How many random numbers were multiplied to make it. */
  readonly factors: number
  /** Size of what cancelled on the way, by which errors are absolute; 0 where none did. */
  readonly absolute: number
  /** How often that grows likewise: an error of one sum that is multiplied by another sum is. */
  readonly absoluteRoots: number
  readonly isPositive: boolean
  /** True if it was divided by what may vanish. */
  readonly steep: boolean
  /** The last operation was a sum of so many terms of either sign, which a division by their number makes a mean. */
  readonly open?: Count | undefined
}

const single = 24
export const fits = (bits: number, size: number): Value['exact'] =>
  bits + Math.log2(Math.max(size, 1)) <= single ? { bits, size } : undefined

/** Binary places behind the point, of numbers with few; undefined of others. */
function bitsOf(value: number): number | undefined {
  for (let bits = 0; bits <= 10; bits++) if (Number.isInteger(value * 2 ** bits)) return bits
  return undefined
}

const isPowerOfTwo = (value: number): boolean =>
  value !== 0 && Number.isFinite(value) && Number.isInteger(Math.log2(Math.abs(value)))

/** An input or a constant that takes these values, of which random ones have that magnitude. */
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

/** An integer: exact whatever becomes of it. */
export const integer = (size: number, magnitude: number): Value => ({
  ...leaf([1], magnitude),
  exact: fits(0, size),
  isPositive: false,
})

export const unique = (a: readonly Count[], b: readonly Count[]): readonly Count[] => [
  ...new Map([...a, ...b].map((count) => [JSON.stringify(count), count])).values(),
]

/** A number that is written in a body; NaN and infinities, which mark what has no value, say nothing of how large others are. */
export function constant(value: number): Value {
  const size = Number.isFinite(value) ? value : 0
  return { ...leaf([size], Math.abs(size)), factors: 0, isConstant: true }
}

/** What two values have in common with everything made of them. */
export const joined = (a: Value, b: Value) => ({
  isConstant: a.isConstant === true && b.isConstant === true,
  calls: a.calls || b.calls,
  sums: unique(a.sums, b.sums),
  products: unique(a.products, b.products),
  factors: Math.max(a.factors, b.factors),
  sources: new Set([...a.sources, ...b.sources]),
  steep: a.steep || b.steep,
  isMoved: false,
  open: undefined,
})

/** A size that may grow with the length of sums. */
type Growing = readonly [size: number, roots: number]

/** The larger of sizes of results: one that grows more often, and of those alike the larger. Nothing is smaller than anything. */
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
  // A constant beside a value says nothing of its size: the number that hides a score is huge.
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
 * The size of the largest of many such values, over that of a product of two, which is what the bounds of elementwise results are for: of
 * ten thousand normal numbers the largest is 3.9, of products of two, three and four of them 7.6, 13 and 19.
 */
const tailOf = ({ factors }: Value): number => 2 ** Math.max(0, factors - 2)

/** Functions of one number err by as much as is allowed relative to a result where that is large, and where it is small nothing grows. */
const areOfOne = (a: Value, b: Value): boolean =>
  a.sources.size === b.sources.size && [...a.sources].every((source) => b.sources.has(source))

export function plus(a: Value, b: Value): Value {
  const exact = a.exact && b.exact && fits(Math.max(a.exact.bits, b.exact.bits), a.exact.size + b.exact.size)
  const isPositive = a.isPositive && b.isPositive
  const [magnitude, roots] = largest([a, b].map(sizeOf))
  // One rounding of a sum is less than those of the sum's own terms, which are as many as its root squared.
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
    // What cancelled may be 0.
    steep: a.steep || b.steep || b.absolute > 0,
  }
}
