/**
 * Plans by numbers of rows at the end of a search: where the plan that is best over all shapes is not within two percent of the fastest at the fewest
 * rows, the fastest runs there. Those that are faster elsewhere, or stack other weights, stay plans of their own.
 */
import { summarise } from '../statistics.js'
import { chanceOf, fewestSamples } from '../target/baseline.js'
import type { Samples } from './whole_plans.js'

/** Largest ratio to the fastest plan of a shape at which one plan for all shapes is preferred, and the chance of a difference that is accepted. */
const [oneForAll, accepted] = [1.02, 0.01]

/** Place of the plan that each shape prefers: the main one, unless another is clearly faster there. */
export function preferred(plans: readonly Samples[], main: number): readonly number[] {
  return (plans[main] ?? []).map((own, shape) => {
    const median = (at: number): number => summarise(plans[at]?.[shape] ?? [Number.NaN]).median
    const best = plans.reduce((least, _, at) => (median(at) < median(least) ? at : least), main)
    const samples = plans[best]?.[shape] ?? []
    const enough = Math.min(own.length, samples.length) >= fewestSamples
    return enough && median(main) > oneForAll * median(best) && chanceOf(own, samples) < accepted ? best : main
  })
}

export interface ByRows {
  /** Place of the plan for many rows. */
  readonly main: number
  /** Places of plans for at most so many rows, fewest first. */
  readonly few: readonly { readonly most: number; readonly at: number }[]
  /** Places of other plans, with the shapes that prefer them. */
  readonly others: ReadonlyMap<number, readonly number[]>
}

/**
 * @param rows of each shape @param prefers place of the plan that each shape prefers
 * @param fits whether a plan reads the same weights as the main one
 */
export function byRows(rows: readonly number[], prefers: readonly number[], main: number, fits: (at: number) => boolean): ByRows {
  const few: { most: number; at: number }[] = []
  const counts = [...new Set(rows)].sort((a, b) => a - b)
  for (const most of counts) {
    const [at, ...more] = new Set(prefers.filter((_, shape) => rows[shape] === most))
    if (at === undefined || more.length > 0 || at === main || !fits(at)) break
    if (few.at(-1)?.at === at) few.pop()
    few.push({ most, at })
  }
  const last = few.at(-1)
  // Without a shape that prefers the main plan, the plan of the most rows takes its place.
  const isAll = last !== undefined && last.most === counts.at(-1)
  const kept = isAll ? few.slice(0, -1) : few
  const many = isAll ? last.at : main
  const others = new Map<number, number[]>()
  for (const [shape, at] of prefers.entries())
    if (runsAt({ main: many, few: kept }, rows, shape) !== at) others.set(at, [...(others.get(at) ?? []), shape])
  return { main: many, few: kept, others }
}

/** Place of the plan that runs at a shape. */
export const runsAt = ({ main, few }: Pick<ByRows, 'main' | 'few'>, rows: readonly number[], shape: number): number =>
  few.find(({ most }) => (rows[shape] ?? 0) <= most)?.at ?? main
