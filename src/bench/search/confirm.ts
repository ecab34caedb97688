/**
 * Whole plans at the end of a search: launches overlap, so the sum of groups is no measure of a plan. A plan replaces the one before it only if it
 * is faster by more than two percent and a rank test agrees: a search that is repeated ends with the same plan.
 */
import { summarise } from '../statistics.js'
import { chanceOf, fewestSamples } from '../target/baseline.js'
import type { Samples } from './whole_plans.js'

/** Smallest ratio of a replaced plan to the one that replaces it, and the chance of it that is accepted. */
const [leastRatio, most] = [1.02, 0.01]

export interface Verdict {
  /** Place of the plan that stays at the end. */
  readonly place: number
  /** Geometric mean over the shapes of its time in relation to that of the first. */
  readonly ratio: number
  /** Median milliseconds of each plan at each shape. */
  readonly medians: readonly (readonly number[])[]
}

/** The plan that stays: the first, unless a later one is faster than the one that stays so far. */
export function decide(plans: readonly Samples[]): Verdict {
  const medians = plans.map((samples) => samples.map((each) => summarise(each).median))
  const ratioOf = (one: number, other: number): number => {
    const logs = (medians[one] ?? []).map((each, shape) => Math.log(each / (medians[other]?.[shape] ?? Number.NaN)))
    return Math.exp(logs.reduce((sum, each) => sum + each, 0) / logs.length)
  }
  const isFaster = (one: number, other: number): boolean =>
    (plans[one] ?? []).some((samples, shape) => {
      const before = plans[other]?.[shape] ?? []
      const enough = Math.min(samples.length, before.length) >= fewestSamples
      return enough && chanceOf(samples, before) < most && summarise(samples).median < summarise(before).median
    })
  let place = 0
  for (let at = 1; at < plans.length; at++) if (ratioOf(at, place) * leastRatio < 1 && isFaster(at, place)) place = at
  return { place, ratio: ratioOf(place, 0), medians }
}
