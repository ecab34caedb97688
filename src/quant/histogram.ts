/** Histograms of an activation's magnitudes, which calibration collects on the device and chooses thresholds from. */
import { negligible } from '../ir/int8_scale.js'

export interface Histogram {
  /** Largest magnitude. */
  readonly amax: number
  /** Number of magnitudes in each of the equal bins that span [0, amax]; the largest is in the last. */
  readonly counts: Float64Array
}

/** Default number of bins of collection. */
export const defaultBins = 2048

/** Bins per unit of magnitude; 0 if all magnitudes are negligible, so that all are counted in the first bin. */
export const binScale = (amax: number, bins: number): number => (amax < negligible ? 0 : bins / amax)

/** Adds the counts of two collections over the same bins. @throws RangeError if they differ in bins or span */
export function merge(a: Histogram, b: Histogram): Histogram {
  if (a.amax !== b.amax || a.counts.length !== b.counts.length) {
    throw new RangeError(
      `histograms of ${a.counts.length} bins over [0, ${a.amax}] and of ${b.counts.length} over [0, ${b.amax}] cannot be merged`,
    )
  }
  return { amax: a.amax, counts: a.counts.map((count, bin) => count + (b.counts[bin] ?? 0)) }
}
