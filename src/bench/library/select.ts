/**
 * Selection of a matmul library's algorithm. The library's first one runs by default, so it stays unless another is faster by more than
 * the repeatability of measurements.
 */
import type { Summary } from '../statistics.js'
import { leastGain } from '../tune_select.js'

/** Number of algorithms timed a second time: the fastest of many is often the luckiest. */
const leading = 4

/** Indices of the algorithms with the smallest medians, the fastest first. */
export const leaders = (times: readonly Summary[]): number[] =>
  [...times.keys()].sort((i, j) => medianAt(times, i) - medianAt(times, j)).slice(0, leading)

const medianAt = (times: readonly Summary[], i: number): number => times[i]?.median ?? Number.POSITIVE_INFINITY

/** Index of the selected algorithm: the fastest, if its quartiles do not overlap those of the first one and it saves enough. */
export function chosen(first: Summary, times: readonly Summary[]): number | undefined {
  const [best] = leaders(times)
  const time = best === undefined ? undefined : times[best]
  if (time === undefined || !(time.median < (1 - leastGain) * first.median)) return undefined
  return time.high < first.low ? best : undefined
}
