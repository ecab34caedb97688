/**
 * The largest elements of a row, with their indices: the reference of `topK`, and the counts that kernels are compiled for. All
 * implementations (a body run by Node, the IR's evaluator, native/device/top_k.cuh) order elements by value and then by index. The
 * result therefore does not depend on the order in which elements are visited.
 */
import { usageError } from '../errors.js'

/** Counts for which a ranking kernel has an instance; another count uses the next larger one. */
export const rankedCounts: readonly number[] = [1, 2, 4, 8, 16, 32, 64]

/**
 * The smallest compiled count that is at least `wanted`.
 * @throws usage `topk.count` for a count that is not a positive integer or exceeds the largest
 */
export function countFor(wanted: number): number {
  const count = Number.isInteger(wanted) && wanted > 0 ? rankedCounts.find((each) => each >= wanted) : undefined
  if (count !== undefined) return count
  throw usageError('topk.count', `expected a count of largest elements from 1 to ${rankedCounts.at(-1)}, got ${wanted}`)
}

export interface Ranking {
  /** Largest first. */
  readonly values: readonly number[]
  /** Their positions in the row. */
  readonly indices: readonly number[]
}

/**
 * The `count` largest of `value(0) .. value(length - 1)`, with the lower index first among equals. NaN is never among them. If fewer
 * are left, -Infinity at index -1 fills the rest.
 */
export function rankValues(count: number, length: number, value: (index: number) => number): Ranking {
  const values: number[] = []
  const indices: number[] = []
  for (let i = 0; i < length; i++) {
    const candidate = value(i)
    const last = values[count - 1]
    if (Number.isNaN(candidate) || (last !== undefined && candidate <= last)) continue
    let at = values.length
    // Among equal values, the earlier one stays first.
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
