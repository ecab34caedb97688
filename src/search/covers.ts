/** The problem of a measured search, forms of a graph with their groups and launches, and the covers that are the cheapest by a cost of groups. */
import { createHash } from 'node:crypto'
import { structuralHash } from '../ir/structural_hash.js'
import { bestCovers, type Cover, type CoverTask } from './cover.js'
import type { Launch, Prices } from './price.js'

/** A form of the graph, such as one with stacked matmuls, with its groups. */
export interface Variant {
  readonly reads: CoverTask['reads']
  readonly groups: readonly {
    readonly members: readonly number[]
    /** Its launch at each shape. */
    readonly launches: readonly Launch[]
  }[]
}

export interface Problem {
  /** Names of the shapes. */
  readonly shapes: readonly string[]
  readonly variants: readonly Variant[]
}

/** Hash of a problem: the same as long as its groups are the same kernels at the same sizes. */
export function problemId({ shapes, variants }: Problem): string {
  return hashOf(structuralHash([shapes, variants.map(({ reads, groups }) => [reads, groups])]))
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)

/** A cover of one variant. */
export interface Found extends Cover {
  readonly variant: number
}

/** Cost of a group by its launches at the shapes. */
export type GroupCost = (launches: readonly Launch[]) => number

/** Every different launch of a problem. */
export function distinct({ variants }: Problem): ReadonlyMap<string, Launch> {
  return new Map(variants.flatMap(({ groups }) => groups.flatMap((group) => group.launches.map((launch) => [launch.id, launch]))))
}

/** The cheapest covers over all variants, by the cost of groups. */
export function coversOf(
  { variants }: Problem,
  count: number,
  cost: GroupCost,
  without: (variant: number, group: number) => boolean = () => false,
): readonly Found[] {
  const found = variants.flatMap(({ reads, groups }, variant) => {
    const priced = groups.map(({ members, launches }, at) => ({ at, members, cost: cost(launches) }))
    const choices = priced.filter((choice) => Number.isFinite(choice.cost) && !without(variant, choice.at))
    return bestCovers({ reads, choices }, count).map(
      (cover): Found => ({ ...cover, variant, chosen: cover.chosen.flatMap((at) => choices[at]?.at ?? []) }),
    )
  })
  return found.toSorted((a, b) => a.cost - b.cost).slice(0, count)
}

/** Launches of a cover at a shape. */
export const launchesOf = ({ variants }: Problem, shape: number, { variant, chosen }: Found): readonly Launch[] =>
  chosen.flatMap((at) => variants[variant]?.groups[at]?.launches[shape] ?? [])

/** Cost of a group over all shapes: the sum of its shares of the best cover of each. */
export const jointCost =
  (prices: Prices, least: readonly number[]): GroupCost =>
  (launches) =>
    launches.reduce((sum, launch, shape) => sum + prices.price(launch).seconds / (least[shape] ?? 1), 0)

export const idOf = ({ variant, chosen }: Found): string => `${variant}:${chosen.join()}`

/** Hash of the launches of a cover at a shape: the same for covers whose plans run the same kernels at the same sizes. */
export const wholeId = (problem: Problem, shape: number, cover: Found): string =>
  hashOf(
    launchesOf(problem, shape, cover)
      .map(({ id }) => id)
      .sort()
      .join('\n'),
  )
