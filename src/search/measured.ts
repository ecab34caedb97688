/**
 * A search by measuring: covers a graph by the groups that are the cheapest so far, at each shape and over all of them, measures those of them that
 * never were, and repeats, until no other group can be expected to be in a better cover. Each different launch is measured once, and a kernel at all
 * shapes at which it may be of use. The clock is given: a device, or a table.
 */
import { coversOf, distinct, type Found, type GroupCost, idOf, jointCost, launchesOf, type Problem } from './covers.js'
import { outlooksOf } from './outlook.js'
import { type Launch, type Measured, Prices } from './price.js'

export interface Clock {
  /**
   * Times launches, and calls `seen` with each result as it is known. Ends early, without some results, when time is up.
   * @returns ids of launches that are still being timed; called without launches, it waits for some of these
   */
  time(launches: readonly Launch[], seen: (launch: Launch, measured: Measured) => void): Promise<ReadonlySet<string>>
  /** True once nothing more can be measured. */
  isOver(): boolean
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
  /** The cheapest covers over all shapes: their costs are sums of ratios to the best cover of each shape. */
  readonly joint: readonly Found[]
  /** Reason for the end: nothing can be better, the best stayed the best, or time is over. */
  readonly ended: 'bound' | 'settled' | 'time'
}

export interface SearchSettings {
  /** Covers that are compared in each round. */
  readonly covers?: number
  /** Kernels of which launches are measured in a round: compiling one takes longer than timing it at several sizes. */
  readonly batch?: number
  /** Kernels that can be measured in a round without delay: others than those of the best covers make up for them. Default: none. */
  readonly idle?: () => number
  /** Launches that are measured in any case, such as those of the plan to beat. */
  readonly given?: readonly Launch[]
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

/** Rounds of measuring in which the best cover stays the same before a search ends. */
const settledRounds = 3

export async function measuredSearch(problem: Problem, clock: Clock, settings: SearchSettings = {}): Promise<SearchResult> {
  const { batch = 16, idle = () => 0, known = new Map(), given = [], isFinished = false, onRound = () => undefined } = settings
  const launches = distinct(problem)
  const prices = new Prices()
  for (const launch of launches.values()) {
    const before = known.get(launch.id)
    if (before !== undefined) prices.add(launch, before)
  }
  let [settled, last] = [0, '']
  let underway: ReadonlySet<string> = new Set()
  /** Launches of the round of measuring that is underway. */
  const asked = new Set<string>()
  for (let round = 1; ; round++) {
    const { covers, joint, hopes } = coversBy(problem, prices, settings.covers)
    const samples = [
      ...given.filter((launch) => !prices.has(launch)),
      ...problem.shapes.flatMap((_, shape) => samplesOf(problem, shape, prices, launches)),
    ]
    const best = covers.flatMap(([first]) => first ?? [])
    const state = { round, measured: [...launches.values()].filter(prices.has).length, launches: launches.size, best }
    onRound(state)
    const wanted = wantedOf(problem, prices, [covers, hopes], joint)
    const now = [...best, ...joint.slice(0, 1)].map(idOf).join(' ')
    // A kind of which nothing was measured may have prices that are wrong by any factor.
    const isSampled = samples.length === 0
    const isStable = now === last && isSampled && isMeasured(problem, prices, covers, 2)
    if (!isStable) settled = 0
    else if (![...asked].some((id) => underway.has(id))) settled += 1
    if (!isStable || ![...asked].some((id) => underway.has(id))) asked.clear()
    last = now
    const end = (ended: SearchResult['ended']): SearchResult => ({ ...state, prices, covers, joint, ended })
    const isNothingOpen = [...samples, ...wanted].length + underway.size === 0
    if (isNothingOpen || (isSampled && isBound(problem, prices, covers, hopes))) return end('bound')
    if (isFinished || settled >= settledRounds) return end('settled')
    if (clock.isOver()) return end('time')
    const chosen = inOrder(problem, prices, { samples, wanted, underway, least: leastOf(covers), batch, idle: idle() })
    for (const { id } of chosen) asked.add(id)
    underway = await clock.time(chosen, (launch, result) => prices.add(launch, result))
  }
}

/** The cheapest covers at each shape and over all shapes, and those that would be if all that was not measured did well. */
function coversBy(problem: Problem, prices: Prices, count = 4) {
  const at = (shape: number, many: number, price: (launch: Launch) => number): readonly Found[] =>
    coversOf(problem, many, ({ [shape]: launch }) => (launch === undefined ? Number.POSITIVE_INFINITY : price(launch)))
  const covers = problem.shapes.map((_, shape) => at(shape, count, (launch) => prices.price(launch).seconds))
  const hopes = problem.shapes.map((_, shape) => at(shape, hopeful, (launch) => prices.optimistic(launch)))
  const joint = coversOf(problem, count, jointCost(prices, leastOf(covers)))
  return { covers, hopes, joint }
}

/** Cost of the best cover at each shape. */
const leastOf = (covers: SearchResult['covers']): readonly number[] => covers.map(([best]) => best?.cost ?? 1)

interface Open {
  readonly samples: readonly Launch[]
  readonly wanted: readonly Launch[]
  readonly underway: ReadonlySet<string>
  readonly least: readonly number[]
  readonly batch: number
  readonly idle: number
}

/** Cost of the cheapest cover with a group in relation to the best up to which a kernel is measured at a shape along with others. */
const near = 1.25

/**
 * Launches to measure, by kernels: samples of kinds, then those of the best covers, then others that would make a cover the best if they did well;
 * each in the order of what they promise. A kernel is measured at all shapes at which a cover with it is near the best.
 */
function inOrder(problem: Problem, prices: Prices, { samples, wanted, underway, least, batch, idle }: Open): readonly Launch[] {
  const outlooks = outlooksOf(problem, prices, least)
  const promiseOf = ({ id }: Launch): number => outlooks.get(id)?.promise ?? Number.POSITIVE_INFINITY
  const isOpen = (launch: Launch): boolean => !prices.has(launch) && !underway.has(launch.id)
  const sorted = (all: readonly Launch[]): readonly string[] =>
    all
      .filter(isOpen)
      .toSorted((a, b) => promiseOf(a) - promiseOf(b) || (a.id < b.id ? -1 : 1))
      .map(({ content }) => content)
  const all = [...distinct(problem).values()]
  const needed = new Set([...sorted(samples), ...sorted(wanted)])
  const first = [...needed].slice(0, batch)
  const others = new Set(sorted(first.length < idle ? all.filter((launch) => promiseOf(launch) < 1) : []))
  const kernels = new Set([
    ...first,
    ...[...others].filter((content) => !needed.has(content)).slice(0, Math.max(0, idle - first.length)),
  ])
  const asked = new Set([...samples, ...wanted].map(({ id }) => id))
  const isNear = ({ id }: Launch): boolean => asked.has(id) || (outlooks.get(id)?.through ?? Number.POSITIVE_INFINITY) < near
  const places = new Map([...kernels].map((content, at) => [content, at]))
  return all
    .filter((launch) => kernels.has(launch.content) && isOpen(launch) && isNear(launch))
    .toSorted((a, b) => (places.get(a.content) ?? 0) - (places.get(b.content) ?? 0))
}

/** Launches to measure of kinds of which few were: those of a cover that prefers the kind. */
function samplesOf(problem: Problem, shape: number, prices: Prices, launches: ReadonlyMap<string, Launch>): readonly Launch[] {
  const kinds = new Set([...launches.values()].flatMap(({ kind }) => (prices.count(kind) < fewestOfKind ? [kind] : [])))
  return [...kinds].flatMap((kind) => {
    const preferring: GroupCost = ({ [shape]: launch }) =>
      launch === undefined ? Number.POSITIVE_INFINITY : prices.price(launch).seconds * (launch.kind === kind ? sampled : 1)
    const [cover] = coversOf(problem, 1, preferring)
    const own = cover === undefined ? [] : launchesOf(problem, shape, cover).filter((launch) => launch.kind === kind)
    return own.filter((launch) => !prices.has(launch)).slice(0, fewestOfKind)
  })
}

/** True if every launch of the first covers of each shape was measured. */
const isMeasured = (problem: Problem, prices: Prices, covers: SearchResult['covers'], first: number): boolean =>
  covers.every((found, shape) => found.slice(0, first).every((cover) => launchesOf(problem, shape, cover).every(prices.has)))

/** True if the best cover of each shape is measured, and none would be better even if its launches did well. */
const isBound = (problem: Problem, prices: Prices, covers: SearchResult['covers'], hopes: SearchResult['covers']): boolean =>
  isMeasured(problem, prices, covers, 1) && covers.every(([best], shape) => (hopes[shape]?.[0]?.cost ?? 0) >= (best?.cost ?? 0))

/** Launches of the best covers that were not measured; of those over all shapes, at every shape. */
function wantedOf(
  problem: Problem,
  prices: Prices,
  found: readonly SearchResult['covers'][],
  joint: readonly Found[],
): readonly Launch[] {
  const shaped = found.flatMap((lists) =>
    lists.flatMap((list, shape) => list.flatMap((cover) => launchesOf(problem, shape, cover))),
  )
  const over = problem.shapes.flatMap((_, shape) => joint.flatMap((cover) => launchesOf(problem, shape, cover)))
  return [...new Map([...shaped, ...over].map((launch) => [launch.id, launch])).values()].filter((launch) => !prices.has(launch))
}
