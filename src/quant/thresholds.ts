/**
 * Choice of the magnitude that maps to 127, from a histogram. Every method returns a number in [0, amax]; larger values saturate.
 * Pure functions, so that test cases can be written by hand.
 */
import { negligible } from '../ir/int8_scale.js'
import type { Histogram } from './histogram.js'

export type Method =
  /** The largest magnitude: nothing saturates. */
  | { readonly name: 'max' }
  /** The smallest bin edge with at least this share of the magnitudes at or below it, in percent. */
  | { readonly name: 'percentile'; readonly percentile: number }
  /** The least expected squared error of a quantised value. */
  | { readonly name: 'mse' }
  /** The least Kullback-Leibler divergence of the quantised distribution from the original. */
  | { readonly name: 'entropy' }

export const methodNames = ['max', 'percentile', 'mse', 'entropy'] as const

export const defaultPercentile = 99.99

/** Largest quantised magnitude, and the number of quantised magnitudes including zero. */
const largest = 127
const levels = 128

/** The first bin whose upper edge is a candidate: fewer bins than levels lose nothing by quantisation. */
const firstCandidate = 128

/** Threshold chosen by a method; 0 if every magnitude is negligible. */
export function threshold(histogram: Histogram, method: Method): number {
  const { amax } = histogram
  if (amax < negligible) return 0
  switch (method.name) {
    case 'max':
      return amax
    case 'percentile':
      return byPercentile(histogram, method.percentile)
    case 'mse':
      return bestEdge(histogram, squaredErrors(histogram))
    case 'entropy': {
      const counts = withoutZeros(histogram.counts)
      return bestEdge(histogram, (bins) => divergence(counts, bins))
    }
  }
}

/** The upper edge of bin `bins - 1`. */
const edge = ({ amax, counts }: Histogram, bins: number): number =>
  bins === counts.length ? amax : (amax * bins) / counts.length

function byPercentile(histogram: Histogram, percentile: number): number {
  const { counts } = histogram
  const wanted = (counts.reduce((sum, count) => sum + count, 0) * percentile) / 100
  let below = 0
  for (const [bin, count] of counts.entries()) {
    below += count
    if (below >= wanted) return edge(histogram, bin + 1)
  }
  return histogram.amax
}

/** Candidate edge with the least cost, the lowest among equals. Only edges of finite cost are chosen, if there are any. */
function bestEdge(histogram: Histogram, cost: (bins: number) => number): number {
  const { length } = histogram.counts
  let [best, least] = [length, Number.POSITIVE_INFINITY]
  for (let bins = Math.min(firstCandidate, length); bins <= length; bins++) {
    const candidate = cost(bins)
    if (candidate < least) [best, least] = [bins, candidate]
  }
  return edge(histogram, best)
}

/** Sum of squared errors if the first `bins` bins span the quantised range; a magnitude counts as the centre of its bin. */
function squaredErrors({ counts }: Histogram): (bins: number) => number {
  const filled = [...counts.keys()].filter((bin) => (counts[bin] ?? 0) > 0)
  return (bins) => {
    const step = bins / largest
    let total = 0
    for (const bin of filled) {
      const centre = bin + 0.5
      const error = centre - Math.min(Math.round(centre / step), largest) * step
      total += (counts[bin] ?? 0) * error * error
    }
    return total
  }
}

/**
 * Counts with the first bin limited to the second. Zeros, frequent after activation functions and softmax, are exact at any scale and
 * would hide the loss of other values.
 */
const withoutZeros = (counts: Float64Array): Float64Array =>
  counts.map((count, bin) => (bin === 0 && counts.length > 1 ? Math.min(count, counts[1] ?? 0) : count))

/**
 * Kullback-Leibler divergence caused by quantising the first `bins` bins, with all larger magnitudes in the last. The bins are merged into
 * as many levels as int8 has magnitudes, and each level is spread over its non-empty bins. Infinite if values saturate into an empty bin.
 */
function divergence(counts: Float64Array, bins: number): number {
  let [inside, total] = [0, 0]
  for (const [bin, count] of counts.entries()) {
    total += count
    if (bin < bins) inside += count
  }
  if (inside === 0) return Number.POSITIVE_INFINITY
  const last = bins - 1
  let loss = 0
  for (let level = 0; level < levels; level++) {
    const [from, to] = [Math.floor((level * bins) / levels), Math.floor(((level + 1) * bins) / levels)]
    let [mass, filled] = [0, 0]
    for (let bin = from; bin < to; bin++) {
      const count = counts[bin] ?? 0
      mass += count
      if (count > 0) filled++
    }
    const spread = mass / Math.max(filled, 1) / inside
    for (let bin = from; bin < to; bin++) {
      const count = counts[bin] ?? 0
      const original = (bin === last ? count + total - inside : count) / total
      if (original > 0) loss += count > 0 ? original * Math.log(original / spread) : Number.POSITIVE_INFINITY
    }
  }
  return loss
}
