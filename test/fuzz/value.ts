/**
 * Numbers with their interval under float32 arithmetic: `v` is the float64 reference, and the result of a correct kernel lies between `lo` and
 * `hi`. A choice between two, a rounding or an index into a table is known if the interval decides it; otherwise it is the union of the
 * alternatives.
 */
import { flushed, functionErrors, largest, slack, tiny, unit } from './bounds.js'
import { nearestEven } from './storage.js'

export interface Val {
  readonly v: number
  readonly lo: number
  readonly hi: number
}

/** A known number. */
export const exact = (v: number): Val => ({ v, lo: v, hi: v })
/** An unknown number, possibly NaN. */
export const unknown = (v: number): Val => ({ v, lo: Number.NEGATIVE_INFINITY, hi: Number.POSITIVE_INFINITY })

export const isNaNVal = ({ lo, hi }: Val): boolean => Number.isNaN(lo) && Number.isNaN(hi)
export const isUnknown = ({ lo, hi }: Val): boolean => lo === Number.NEGATIVE_INFINITY && hi === Number.POSITIVE_INFINITY
export const isExact = (a: Val): boolean => a.lo === a.hi || isNaNVal(a)

/** An interval without infinity, unless it is one. */
function interval(v: number, lo: number, hi: number): Val {
  if (lo === hi) return { v, lo, hi }
  return Number.isFinite(lo) && Number.isFinite(hi) ? { v, lo, hi } : unknown(v)
}

/** Rounds an interval to float32. @param overflows true if too large a number is certainly infinity */
export function rounded(v: number, lo: number, hi: number, roundings = 1, absolute = 0, overflows = true): Val {
  if (Number.isNaN(v) && Number.isNaN(lo) && Number.isNaN(hi)) return exact(Number.NaN)
  if (Number.isNaN(v) || Number.isNaN(lo) || Number.isNaN(hi)) return unknown(v)
  if (lo === hi && Math.abs(lo) === Number.POSITIVE_INFINITY) return exact(lo)
  const share = slack * roundings * unit
  const low = lo - Math.abs(lo) * share - tiny - absolute
  const high = hi + Math.abs(hi) * share + tiny + absolute
  if (low >= -largest && high <= largest) return interval(v, low, high)
  if (!overflows) return unknown(v)
  if (low > largest) return exact(Number.POSITIVE_INFINITY)
  return high < -largest ? exact(Number.NEGATIVE_INFINITY) : unknown(v)
}

/** The result of an operation that float32 computes without error if it can represent the result. */
function operation(v: number, lo: number, hi: number, from: readonly Val[], overflows = true): Val {
  if (from.every(isExact) && (Math.fround(v) === v || Number.isNaN(v))) return exact(v)
  return rounded(v, lo, hi, 1, 0, overflows)
}

const anyUnknown = (...all: readonly Val[]): boolean => all.some(isUnknown)
const anyNaN = (...all: readonly Val[]): boolean => all.some(isNaNVal)

/** NaN of NaN, unknown of unknown: the first step of most functions. */
function special(v: number, ...all: readonly Val[]): Val | undefined {
  if (anyUnknown(...all)) return unknown(v)
  return anyNaN(...all) ? exact(Number.NaN) : undefined
}

export const add = (a: Val, b: Val): Val => special(a.v + b.v, a, b) ?? operation(a.v + b.v, a.lo + b.lo, a.hi + b.hi, [a, b])
export const neg = (a: Val): Val => ({ v: -a.v, lo: -a.hi, hi: -a.lo })
export const sub = (a: Val, b: Val): Val => add(a, neg(b))

function products(a: Val, b: Val): readonly [number, number] {
  const all = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi]
  return [Math.min(...all), Math.max(...all)]
}

/** A product that overflows may be part of a sum that does not, in one instruction. */
export function mul(a: Val, b: Val): Val {
  const v = a.v * b.v
  return special(v, a, b) ?? operation(v, ...products(a, b), [a, b], false)
}

/** The sign of a zero is not guaranteed, so a quotient by it is unknown. */
export function div(a: Val, b: Val): Val {
  const v = a.v / b.v
  const known = special(v, a, b)
  if (known !== undefined) return known
  if (b.lo <= 0 && b.hi >= 0) return isExact(a) && isExact(b) && a.v === 0 ? exact(Number.NaN) : unknown(v)
  const all = [a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi]
  return operation(v, Math.min(...all), Math.max(...all), [a, b], false)
}

export function minimum(a: Val, b: Val): Val {
  return special(Math.min(a.v, b.v), a, b) ?? interval(Math.min(a.v, b.v), Math.min(a.lo, b.lo), Math.min(a.hi, b.hi))
}
export function maximum(a: Val, b: Val): Val {
  return special(Math.max(a.v, b.v), a, b) ?? interval(Math.max(a.v, b.v), Math.max(a.lo, b.lo), Math.max(a.hi, b.hi))
}

export function abs(a: Val): Val {
  const known = special(Math.abs(a.v), a)
  if (known !== undefined) return known
  const low = a.lo <= 0 && a.hi >= 0 ? 0 : Math.min(Math.abs(a.lo), Math.abs(a.hi))
  return interval(Math.abs(a.v), low, Math.max(Math.abs(a.lo), Math.abs(a.hi)))
}

/** A function that rises, or falls, everywhere, and is computed without error if the result is exact. */
const monotone = (f: (x: number) => number, a: Val): Val => {
  const ends = [f(a.lo), f(a.hi)]
  return special(f(a.v), a) ?? operation(f(a.v), Math.min(...ends), Math.max(...ends), [a], false)
}

/** The square root, of which less than 0 has none. */
export function sqrt(a: Val): Val {
  if (!isNaNVal(a) && !isUnknown(a) && a.lo < 0) return a.hi < 0 ? exact(Number.NaN) : unknown(Math.sqrt(a.v))
  return monotone(Math.sqrt, a)
}

/** A step function, whose result is known where both ends agree. */
const step = (f: (x: number) => number, a: Val): Val => special(f(a.v), a) ?? interval(f(a.v), f(a.lo), f(a.hi))
export const floor = (a: Val): Val => step(Math.floor, a)
export const ceil = (a: Val): Val => step(Math.ceil, a)
export const trunc = (a: Val): Val => step(Math.trunc, a)
export const round = (a: Val): Val => step(nearestEven, a)
export const square = (a: Val): Val => monotone((x) => x * x, abs(a))

/** Toward zero, into int32; of NaN 0. */
export function toInt(a: Val): Val {
  const f = (x: number): number => (Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), -(2 ** 31)), 2 ** 31 - 1))
  return isUnknown(a) ? unknown(f(a.v)) : interval(f(a.v), f(a.lo), f(a.hi))
}

/** A function within the bound that bounds.ts has for it. @param least the lowest argument it is defined for */
export function within(name: string, f: (x: number) => number, a: Val, least = Number.NEGATIVE_INFINITY): Val {
  const v = f(a.v)
  const known = special(v, a)
  if (known !== undefined) return known
  if (a.hi < least) return exact(Number.NaN)
  if (a.lo < least) return unknown(v)
  const { roundings = 4, absolute = 0 } = functionErrors[name] ?? {}
  if (name === 'rsqrt' && a.lo <= 0) return unknown(v)
  const [low, high] = rangeOf(name, f, a)
  // The argument of an exponential has an error of its own from the conversion to base two.
  const own =
    name === 'exp' || name === 'expm1' || name === 'pow'
      ? roundings + Math.min(Math.max(Math.abs(a.lo), Math.abs(a.hi)), 128)
      : roundings
  const tail = low < flushed && high > -flushed ? flushed : 0
  return rounded(v, low, high, own, slack * absolute + tail)
}

function rangeOf(name: string, f: (x: number) => number, a: Val): readonly [number, number] {
  const ends = [f(a.lo), f(a.hi)]
  if (name === 'sin' || name === 'cos') {
    if (!Number.isFinite(a.lo)) return [Number.NaN, Number.NaN]
    const width = a.hi - a.lo
    const v = f(a.v)
    return [Math.max(-1, v - width), Math.min(1, v + width)]
  }
  // The one turn of gelu, between -0.76 and -0.75.
  if (name === 'gelu' && a.lo < -0.75 && a.hi > -0.76) return [-0.17004, Math.max(...ends)]
  return [Math.min(...ends), Math.max(...ends)]
}

/** The union of two values, if it is unknown which of them applies. */
export function union(v: number, a: Val, b: Val): Val {
  if (anyUnknown(a, b) || anyNaN(a) !== anyNaN(b)) return unknown(v)
  return anyNaN(a) ? a : interval(v, Math.min(a.lo, b.lo), Math.max(a.hi, b.hi))
}

/** Compares: a known boolean (1 or 0), or one that is not known. */
export function compare(fn: string, a: Val, b: Val): Val {
  const holds = (x: number, y: number): boolean =>
    fn === 'lt' ? x < y : fn === 'le' ? x <= y : fn === 'gt' ? x > y : fn === 'ge' ? x >= y : fn === 'eq' ? x === y : x !== y
  const v = Number(holds(a.v, b.v))
  if (anyUnknown(a, b)) return unknown(v)
  const apart = a.hi < b.lo || a.lo > b.hi
  return apart || (isExact(a) && isExact(b)) ? exact(Number(holds(a.lo, b.lo))) : unknown(v)
}

/** The sum of elements in any order: exact if float32 represents all partial sums. */
export function sumOf(all: readonly Val[]): Val {
  const v = all.reduce((total, each) => total + each.v, 0)
  const known = special(v, ...all)
  if (known !== undefined) return known
  const sizes = all.map((each) => Math.max(Math.abs(each.lo), Math.abs(each.hi)))
  const size = sizes.reduce((total, each) => total + (Number.isFinite(each) ? each : 0), 0)
  // Overflowing partial sums are infinities, which depend on the order.
  if (size > largest / 2) return unknown(v)
  if (!sizes.every(Number.isFinite)) return all.every((each) => Number.isFinite(each.lo) || isExact(each)) ? exact(v) : unknown(v)
  const grain = 2 ** -10
  if (all.every((each) => isExact(each) && Number.isInteger(each.v / grain)) && size / grain <= 2 ** 24) return exact(v)
  const low = all.reduce((total, each) => total + each.lo, 0)
  const high = all.reduce((total, each) => total + each.hi, 0)
  const error = slack * unit * all.length * size + tiny * all.length
  return interval(v, low - error, high + error)
}

/** Widens by the error of computing in another order. */
export const widened = (a: Val, error: number): Val =>
  isExact(a) || isUnknown(a) || error === 0 ? a : interval(a.v, a.lo - error, a.hi + error)
