/** How the magnitudes of an activation are distributed: what calibration collects on the device and chooses thresholds from. */
import { negligible } from '../ir/int8_scale.js'

export interface Histogram {
  /** The largest magnitude. */
  readonly amax: number
  /** Magnitudes in each of the equal bins that span [0, amax]; the largest is in the last. */
  readonly counts: Float64Array
}

/** What collection uses. */
export const defaultBins = 2048

/** Bins a unit of magnitude has; 0 where all magnitudes are negligible, so that all count in the first bin. */
export const binScale = (amax: number, bins: number): number => (amax < negligible ? 0 : bins / amax)

/** The counts of two collections over the same bins. @throws RangeError when they differ in bins or span */
export function merge(a: Histogram, b: Histogram): Histogram {
  if (a.amax !== b.amax || a.counts.length !== b.counts.length) {
    throw new RangeError(
      `histograms of ${a.counts.length} bins over [0, ${a.amax}] and of ${b.counts.length} over [0, ${b.amax}] cannot be merged`,
    )
  }
  return { amax: a.amax, counts: a.counts.map((count, bin) => count + (b.counts[bin] ?? 0)) }
}
