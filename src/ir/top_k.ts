/**
 * The largest elements of a row, with their indices: what `topK` means, and the counts kernels are compiled for. Everything that
 * computes it (a body run by Node, the IR's evaluator, native/device/top_k.cuh) orders elements by value and then by index, so a
 * result does not depend on the order in which elements are looked at.
 */
import { usageError } from '../errors.js'

/** The counts a kernel that ranks has an instance for; another count takes the next larger one. */
export const rankedCounts: readonly number[] = [1, 2, 4, 8, 16, 32, 64]

/**
 * The smallest count kernels are compiled for that is at least `wanted`.
 * @throws usage `topk.count` for a count that is no positive integer or beyond the largest
 */
export function countFor(wanted: number): number {
  const count = Number.isInteger(wanted) && wanted > 0 ? rankedCounts.find((each) => each >= wanted) : undefined
  if (count !== undefined) return count
  throw usageError('topk.count', `the ${wanted} largest elements are asked for, allowed are 1 to ${rankedCounts.at(-1)}`)
}

export interface Ranking {
  /** Largest first. */
  readonly values: readonly number[]
  /** Where each stands in the row. */
  readonly indices: readonly number[]
}

/**
 * The `count` largest of `value(0) .. value(length - 1)`; the lower index first among equals. NaN is never among them. Where fewer
 * are left, -Infinity at index -1 fills up.
 */
export function rankValues(count: number, length: number, value: (index: number) => number): Ranking {
  const values: number[] = []
  const indices: number[] = []
  for (let i = 0; i < length; i++) {
    const candidate = value(i)
    const last = values[count - 1]
    if (Number.isNaN(candidate) || (last !== undefined && candidate <= last)) continue
    let at = values.length
    // What came earlier stays in front of what equals it.
    while (at > 0 && (values[at - 1] ?? candidate) < candidate) at--
    values.splice(at, 0, candidate)
    indices.splice(at, 0, i)
    values.length = Math.min(values.length, count)
    indices.length = values.length
  }
  const missing = Math.max(0, count - values.length)
  return {
    values: [...values, ...Array.from({ length: missing }, () => Number.NEGATIVE_INFINITY)],
    indices: [...indices, ...Array.from({ length: missing }, () => -1)],
  }
}
