/** Medians and spread of measured times. Times are skewed upward by disturbances, so means are not used. */

export interface Summary {
  readonly median: number
  /** Quartiles: half of the samples lie between them. */
  readonly low: number
  readonly high: number
  readonly best: number
  readonly samples: number
}

/** Quantile `q` of sorted samples, linearly interpolated. */
function quantile(sorted: ArrayLike<number>, q: number): number {
  const position = (sorted.length - 1) * q
  const below = Math.floor(position)
  const low = sorted[below] ?? Number.NaN
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? Number.NaN
  return low + (high - low) * (position - below)
}

/** Summary of samples; all NaN if there are none. */
export function summarise(samples: Iterable<number>): Summary {
  const sorted = Float64Array.from(samples).sort()
  return {
    median: quantile(sorted, 0.5),
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75),
    best: sorted[0] ?? Number.NaN,
    samples: sorted.length,
  }
}
