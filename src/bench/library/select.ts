/**
 * Which of a matmul library's algorithms is kept. The library's first one is what runs where nothing is kept, so it stays unless another
 * wins by more than what measurements repeat to.
 */
import type { Summary } from '../statistics.js'
import { leastGain } from '../tune_select.js'

/** Number of algorithms timed a second time: the fastest of many is often the luckiest. */
const leading = 4

/** Indices of the fastest by their medians, the fastest first. */
export const leaders = (times: readonly Summary[]): number[] =>
  [...times.keys()].sort((i, j) => medianAt(times, i) - medianAt(times, j)).slice(0, leading)

const medianAt = (times: readonly Summary[], i: number): number => times[i]?.median ?? Number.POSITIVE_INFINITY

/** The index of the one to keep: the fastest, if its usual times are clear of the first algorithm's and it saves enough. */
export function chosen(first: Summary, times: readonly Summary[]): number | undefined {
  const [best] = leaders(times)
  const time = best === undefined ? undefined : times[best]
  if (time === undefined || !(time.median < (1 - leastGain) * first.median)) return undefined
  return time.high < first.low ? best : undefined
}
