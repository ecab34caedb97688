/**
 * Compares a device's results with expected values, strictly. NaN never passes, not even against NaN, so that poisoned output fails,
 * unless the caller knows that it was computed. An infinity equals only the same infinity. A missing element is a failure.
 */
import type { Tolerance } from './tolerance.js'

export interface WorstElement {
  readonly index: number
  readonly actual: number
  readonly expected: number
  /** Absolute error, infinite if it is not a number. */
  readonly error: number
  readonly allowed: number
}

export interface Comparison {
  readonly passed: boolean
  readonly elements: number
  /** Elements outside their tolerance. */
  readonly failures: number
  /** The element with the largest ratio of error to tolerance; absent if nothing differs. */
  readonly worst: WorstElement | undefined
  /** One line: what differs, where, by how much. */
  readonly summary: string
}

/**
 * Compares element by element. Buffers of different lengths always fail.
 * @param tolerance for every element, or by index
 * @param nan `equals` if NaN passes where NaN is expected
 */
export function compare(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: Tolerance | ((index: number) => Tolerance),
  nan: 'differs' | 'equals' = 'differs',
): Comparison {
  const boundOf = typeof tolerance === 'function' ? tolerance : () => tolerance
  const elements = expected.length
  if (actual.length !== elements) {
    const summary = `${actual.length} elements instead of ${elements}`
    return { passed: false, elements, failures: Math.abs(actual.length - elements), worst: undefined, summary }
  }
  let failures = 0
  let worst: WorstElement | undefined
  let worstRatio = 0
  for (let index = 0; index < elements; index++) {
    const a = actual[index] ?? Number.NaN
    const e = expected[index] ?? Number.NaN
    if (a === e || (nan === 'equals' && Number.isNaN(a) && Number.isNaN(e))) continue
    const difference = Math.abs(a - e)
    const error = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference
    const { absolute, relative } = boundOf(index)
    const allowed = Number.isFinite(e) ? absolute + relative * Math.abs(e) : 0
    if (error > allowed) failures++
    const ratio = Number.isFinite(error) && allowed > 0 ? error / allowed : Number.POSITIVE_INFINITY
    if (worst === undefined || ratio > worstRatio) {
      worst = { index, actual: a, expected: e, error, allowed }
      worstRatio = ratio
    }
  }
  return { passed: failures === 0, elements, failures, worst, summary: describe(elements, failures, worst) }
}

/** The nearer of the two values that each element may have; the first if both are equally near, or neither is a number. */
export const nearer = (actual: ArrayLike<number>, first: ArrayLike<number>, other: ArrayLike<number>): Float64Array =>
  Float64Array.from(first, (value, i) => {
    const [found, second] = [actual[i] ?? Number.NaN, other[i] ?? Number.NaN]
    return found === second || Math.abs(found - second) < Math.abs(found - value) ? second : value
  })

function describe(elements: number, failures: number, worst: WorstElement | undefined): string {
  if (worst === undefined) return `${elements} elements equal`
  const where = `element ${worst.index} is ${worst.actual}, expected ${worst.expected}, error ${worst.error.toExponential(2)}, allowed ${worst.allowed.toExponential(2)}`
  return failures === 0 ? `worst ${where}` : `${failures} of ${elements} elements differ; worst ${where}`
}

/** Norm of the difference over the norm of the expected values. NaN when either holds a NaN, so that no bound accepts it. */
export function relativeL2(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.NaN
  let difference = 0
  let norm = 0
  for (let i = 0; i < expected.length; i++) {
    const e = expected[i] ?? Number.NaN
    difference += ((actual[i] ?? Number.NaN) - e) ** 2
    norm += e ** 2
  }
  return difference === 0 ? 0 : Math.sqrt(difference / norm)
}
