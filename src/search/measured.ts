/**
 * A search by measuring: covers a graph by the groups that are the cheapest so far, measures those of them that never were, and repeats, until no
 * other group can be expected to be in a better cover. Each different launch is measured once. The clock is given: a device, or a table.
 */
import { createHash } from 'node:crypto'
import { structuralHash } from '../ir/structural_hash.js'
import { bestCovers, type Cover, type CoverTask } from './cover.js'
import { type Launch, type Measured, Prices } from './price.js'

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

export interface Clock {
  /**
   * Times launches, and calls `seen` with each result as it is known. Ends early, without some results, when time is up.
   * @returns ids of launches that are still being timed; called without launches, it waits for some of these
   */
  time(launches: readonly Launch[], seen: (launch: Launch, measured: Measured) => void): Promise<ReadonlySet<string>>
  /** True once nothing more can be measured. */
  isOver(): boolean
}

/** Hash of a problem: the same as long as its groups are the same kernels at the same sizes. */
export function problemId({ shapes, variants }: Problem): string {
  const text = structuralHash([shapes, variants.map(({ reads, groups }) => [reads, groups])])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** A cover of one variant. */
export interface Found extends Cover {
  readonly variant: number
}

/** State of a search after a round. */
export interface Round {
  readonly round: number
  /** Launches measured so far, and all there are. */
  readonly measured: number
  readonly launches: number
  /** The best cover at each shape by the prices so far. */
  readonly best: readonly Found[]
}

export interface SearchResult extends Round {
  readonly prices: Prices
  /** The cheapest covers at each shape, with all of their launches measured if the search ended by itself. */
  readonly covers: readonly (readonly Found[])[]
  /** Reason for the end: nothing can be better, the best stayed the best, or time is over. */
  readonly ended: 'bound' | 'settled' | 'time'
}

export interface SearchSettings {
  /** Covers that are compared in each round. */
  readonly covers?: number
  /** Kernels of which launches are measured in a round: compiling one takes longer than timing it at several sizes. */
  readonly batch?: number
  /** Results of earlier searches, by the id of the launch. */
  readonly known?: ReadonlyMap<string, Measured>
  /** True if a search of the same problem with these results has ended by itself: it measures nothing more. */
  readonly isFinished?: boolean
  readonly onRound?: (round: Round) => void
}

/** Covers whose launches are measured because they may turn out to be the best. */
const hopeful = 2

/** Launches of a kind that are measured at least: its prices may be so wrong that no cover would choose one. */
const fewestOfKind = 2

/** Share of its price at which a launch of a kind that was hardly measured is chosen. */
const sampled = 1e-3

/** Rounds in which the best cover stays the same before a search ends. */
const settledRounds = 3

export async function measuredSearch(problem: Problem, clock: Clock, settings: SearchSettings = {}): Promise<SearchResult> {
  const { covers: count = 4, batch = 16, known = new Map(), isFinished = false, onRound = () => undefined } = settings
  const launches = distinct(problem)
  const prices = new Prices()
  for (const launch of launches.values()) {
    const before = known.get(launch.id)
    if (before !== undefined) prices.add(launch, before)
  }
  let [settled, last] = [0, '']
  let underway: ReadonlySet<string> = new Set()
  for (let round = 1; ; round++) {
    const covers = problem.shapes.map((_, shape) => coversOf(problem, shape, count, (launch) => prices.price(launch).seconds))
    const hopes = problem.shapes.map((_, shape) => coversOf(problem, shape, hopeful, (launch) => prices.optimistic(launch)))
    const samples = problem.shapes.flatMap((_, shape) => samplesOf(problem, shape, prices, launches))
    const best = covers.flatMap(([first]) => first ?? [])
    const measured = [...launches.values()].filter(prices.has).length
    const state = { round, measured, launches: launches.size, best }
    onRound(state)
    const wanted = [...new Set([...samples, ...wantedOf(problem, prices, [covers, hopes])])].filter(({ id }) => !underway.has(id))
    const now = best.map(({ variant, chosen }) => `${variant}:${chosen.join()}`).join(' ')
    // A kind of which nothing was measured may have prices that are wrong by any factor.
    const isSampled = samples.length === 0
    settled = now === last && isSampled && isMeasured(problem, prices, covers, 2) ? settled + 1 : 0
    last = now
    const end = (ended: SearchResult['ended']): SearchResult => ({ ...state, prices, covers, ended })
    if (wanted.length + underway.size === 0 || (isSampled && isBound(problem, prices, covers, hopes))) return end('bound')
    if (isFinished || settled >= settledRounds) return end('settled')
    if (clock.isOver()) return end('time')
    underway = await clock.time(ofKernels(wanted, batch), (launch, result) => prices.add(launch, result))
  }
}

/** The launches of the first kernels. */
function ofKernels(launches: readonly Launch[], count: number): readonly Launch[] {
  const kernels = new Set([...new Set(launches.map(({ content }) => content))].slice(0, count))
  return launches.filter(({ content }) => kernels.has(content))
}

/** Every different launch of a problem. */
export function distinct({ variants }: Problem): ReadonlyMap<string, Launch> {
  return new Map(variants.flatMap(({ groups }) => groups.flatMap((group) => group.launches.map((launch) => [launch.id, launch]))))
}

/** The cheapest covers at a shape over all variants. */
export function coversOf(
  { variants }: Problem,
  shape: number,
  count: number,
  cost: (launch: Launch) => number,
  without: (variant: number, group: number) => boolean = () => false,
): readonly Found[] {
  const found = variants.flatMap(({ reads, groups }, variant) => {
    const priced = groups.map(({ members, launches }, at) => {
      const launch = launches[shape]
      return { at, members, cost: launch === undefined ? Number.POSITIVE_INFINITY : cost(launch) }
    })
    const choices = priced.filter((choice) => Number.isFinite(choice.cost) && !without(variant, choice.at))
    return bestCovers({ reads, choices }, count).map(
      (cover): Found => ({ ...cover, variant, chosen: cover.chosen.flatMap((at) => choices[at]?.at ?? []) }),
    )
  })
  return found.toSorted((a, b) => a.cost - b.cost).slice(0, count)
}

/** Launches to measure of kinds of which few were: those of a cover that prefers the kind. */
function samplesOf(problem: Problem, shape: number, prices: Prices, launches: ReadonlyMap<string, Launch>): readonly Launch[] {
  const kinds = new Set([...launches.values()].flatMap(({ kind }) => (prices.count(kind) < fewestOfKind ? [kind] : [])))
  return [...kinds].flatMap((kind) => {
    const preferring = (launch: Launch): number => prices.price(launch).seconds * (launch.kind === kind ? sampled : 1)
    const [cover] = coversOf(problem, shape, 1, preferring)
    const own = cover === undefined ? [] : launchesOf(problem, shape, cover).filter((launch) => launch.kind === kind)
    return own.filter((launch) => !prices.has(launch)).slice(0, fewestOfKind)
  })
}

/** Launches of a cover at a shape. */
export const launchesOf = ({ variants }: Problem, shape: number, { variant, chosen }: Found): readonly Launch[] =>
  chosen.flatMap((at) => variants[variant]?.groups[at]?.launches[shape] ?? [])

/** True if every launch of the first covers of each shape was measured. */
const isMeasured = (problem: Problem, prices: Prices, covers: SearchResult['covers'], first: number): boolean =>
  covers.every((found, shape) => found.slice(0, first).every((cover) => launchesOf(problem, shape, cover).every(prices.has)))

/** True if the best cover of each shape is measured, and none would be better even if its launches did well. */
const isBound = (problem: Problem, prices: Prices, covers: SearchResult['covers'], hopes: SearchResult['covers']): boolean =>
  isMeasured(problem, prices, covers, 1) && covers.every(([best], shape) => (hopes[shape]?.[0]?.cost ?? 0) >= (best?.cost ?? 0))

/** Launches of the best covers that were not measured: those first that are in many of them, take long and have the least certain price. */
function wantedOf(problem: Problem, prices: Prices, found: readonly SearchResult['covers'][]): readonly Launch[] {
  const scores = new Map<string, { readonly launch: Launch; score: number }>()
  for (const lists of found) {
    for (const [shape, list] of lists.entries()) {
      const least = list[0]?.cost ?? 1
      for (const [rank, cover] of list.entries()) {
        for (const launch of launchesOf(problem, shape, cover)) {
          if (prices.has(launch)) continue
          const { seconds, by } = prices.price(launch)
          const uncertain = by === 'model' ? 1 : 0.3
          const known = scores.get(launch.id) ?? { launch, score: 0 }
          known.score += (uncertain * seconds) / least / (rank + 1)
          scores.set(launch.id, known)
        }
      }
    }
  }
  return [...scores.values()]
    .sort((a, b) => b.score - a.score || (a.launch.id < b.launch.id ? -1 : 1))
    .map(({ launch }) => launch)
}
