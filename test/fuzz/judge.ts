/** Compares the stored results of a kernel with the float64 reference, element by element. */
import { looseShare } from './bounds.js'
import type { DType } from './describe.js'
import type { Held } from './evaluate.js'
import { stored } from './storage.js'
import { isNaNVal, isUnknown, type Val } from './value.js'

export interface Verdict {
  readonly elements: number
  /** Elements for which the float64 reference is inconclusive: ill-conditioned, or undefined. */
  readonly unjudged: number
  readonly wrong: number
  /** The first element that is wrong. */
  readonly first?: string
}

/** The numbers a store may leave of a value. Rounding is monotone, so that the ends of the interval are rounded. */
function kept(dtype: DType, { lo, hi }: Val): readonly [number, number] {
  return dtype === 'f32'
    ? [Math.fround(lo) < lo ? Math.fround(lo) : lo, Math.fround(hi) > hi ? Math.fround(hi) : hi]
    : [stored(dtype, lo), stored(dtype, hi)]
}

function isRight(dtype: DType, expected: Val, actual: number): boolean {
  if (isNaNVal(expected))
    return Object.is(stored(dtype, Number.NaN), actual) || (Number.isNaN(stored(dtype, Number.NaN)) && Number.isNaN(actual))
  const [low, high] = kept(dtype, expected)
  return actual >= low && actual <= high
}

/** @param actual the numbers that the host reads of the output */
export function judge(name: string, expected: Held, actual: readonly number[]): Verdict {
  const { dtype, values, shape } = expected
  const sizes = values.map(({ v }) => Math.abs(v)).filter((size) => Number.isFinite(size))
  const size = sizes.reduce((most, each) => Math.max(most, each), 0)
  let [unjudged, wrong] = [0, 0]
  let first: string | undefined
  for (const [i, value] of values.entries()) {
    if (isUnknown(value)) {
      unjudged++
      continue
    }
    if (value.hi - value.lo > looseShare * Math.max(size, 1e-30) && dtype !== 'i8') unjudged++
    const got = actual[i]
    if (got !== undefined && isRight(dtype, value, got)) continue
    wrong++
    first ??= `${name}[${placeOf(i, shape)}] is ${got}, expected ${text(value, dtype)}`
  }
  if (actual.length !== values.length)
    return {
      elements: values.length,
      unjudged,
      wrong: wrong + 1,
      first: `${name} has ${actual.length} elements, expected ${values.length}`,
    }
  return { elements: values.length, unjudged, wrong, ...(first === undefined ? {} : { first }) }
}

function text(value: Val, dtype: DType): string {
  const [low, high] = kept(dtype, value)
  return isNaNVal(value) ? 'NaN' : `${value.v}${low === high ? '' : ` (${low} to ${high})`}`
}

function placeOf(at: number, shape: readonly number[]): string {
  const places: number[] = []
  let rest = at
  for (const extent of shape.toReversed()) {
    places.unshift(rest % extent)
    rest = Math.floor(rest / extent)
  }
  return places.join(', ')
}

/** Several verdicts as one. */
export function together(verdicts: readonly Verdict[]): Verdict {
  const sum = (of: 'elements' | 'unjudged' | 'wrong'): number => verdicts.reduce((total, each) => total + each[of], 0)
  const first = verdicts.find((each) => each.first !== undefined)?.first
  return { elements: sum('elements'), unjudged: sum('unjudged'), wrong: sum('wrong'), ...(first === undefined ? {} : { first }) }
}
