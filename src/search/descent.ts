/**
 * A descent over whole plans: times covers and those that differ from the best of them in one place, the most promising first, and goes on from
 * whichever is faster, over all shapes and at each by itself. Changes that help on their own are tried together. The clock is given: a device, or a
 * table.
 */
import { type Found, type GroupCost, type Problem, wholeId } from './covers.js'
import { combined, neighboursOf } from './neighbours.js'

export interface WholeClock {
  /** Seconds of plans at each shape, timed side by side: infinite for a plan that cannot be run. */
  time(covers: readonly Found[]): Promise<readonly (readonly number[])[]>
  /** True once nothing more can be timed. */
  isOver(): boolean
  /** True if a plan can be timed at once; by default all can. Others are timed when none of these is left. */
  isReady?(cover: Found): boolean
  /** Begins to make plans ready. */
  prepare?(covers: readonly Found[]): void
}

/** A cover that was timed whole. */
export interface Whole {
  readonly cover: Found
  /** Seconds at each shape. */
  readonly seconds: readonly number[]
}

export interface DescentSettings {
  /** Plans that are timed beside the best one at a time. */
  readonly width?: number
  /** Cost by groups in relation to the best plan up to which a plan is tried. */
  readonly within?: number
  /** Seconds of a cover at each shape by an earlier search; undefined if it was not timed. */
  readonly known?: (cover: Found) => readonly number[] | undefined
  /** Called with the covers that were timed together, and the best so far. */
  readonly onStep?: (timed: readonly Whole[], best: Whole | undefined) => Promise<void>
}

export interface Descent {
  /** All that were timed, the fastest over all shapes first. */
  readonly wholes: readonly Whole[]
  /** The best by groups that can be run. Those that seem faster were chosen among many, and some of them by noise. */
  readonly first: Whole | undefined
  /** False if time was over before all neighbours of the best were tried. */
  readonly isComplete: boolean
}

/** Shapes at which a plan is to be the best: all of them, or one. */
export interface Aim {
  /** Cost of a group by its price. */
  readonly cost: GroupCost
  /** The only shape that counts; undefined for all of them. */
  readonly shape?: number
}

/** The best plan of an aim, from which others are tried, and the plan before it. */
interface Front {
  readonly aim: Aim
  best: Whole | undefined
  /** Faster plans than the one that was the best when they were tried. */
  together: Found | undefined
}

/** Share by which a plan has to be faster than the best so far: less may be noise. */
const leastGain = 0.005

/**
 * @param starts covers to begin with, which are timed in any case; the first is the reference
 * @param aims the first is that of the whole search
 */
export async function descend(
  problem: Problem,
  starts: readonly Found[],
  aims: readonly Aim[],
  clock: WholeClock,
  { width = 8, within = 1.06, known = () => undefined, onStep }: DescentSettings = {},
): Promise<Descent> {
  const idOf = (cover: Found): string => problem.shapes.map((_, shape) => wholeId(problem, shape, cover)).join(' ')
  const distinctOf = (covers: readonly Found[]): readonly Found[] => [
    ...new Map(covers.map((cover) => [idOf(cover), cover])).values(),
  ]
  const wholes = new Map<string, Whole>()
  const reference = (): Whole | undefined => [...wholes.values()].find(isRun)
  const scoreOf = ({ seconds }: Whole, { shape }: Pick<Aim, 'shape'> = {}): number => {
    const ratios = seconds.map((each, at) => each / (reference()?.seconds[at] ?? each))
    return shape === undefined ? geometricMean(ratios) : (ratios[shape] ?? Number.POSITIVE_INFINITY)
  }
  const sorted = (aim?: Aim): readonly Whole[] => [...wholes.values()].sort((a, b) => scoreOf(a, aim) - scoreOf(b, aim))
  const fronts = aims.map((aim): Front => ({ aim, best: undefined, together: undefined }))
  for (let next = distinctOf(starts); next.length > 0; ) {
    if (wholes.size > 0 && clock.isOver()) return { wholes: sorted(), first: reference(), isComplete: false }
    const timed = await timeBeside(fronts[0]?.best, next, clock, known)
    for (const each of timed) wholes.set(idOf(each.cover), each)
    for (const front of fronts) advance(problem, front, timed, sorted(front.aim).find(isRun), scoreOf)
    await onStep?.(timed, fronts[0]?.best)
    const open = fronts.map((front) => triedFrom(problem, front, within).filter((cover) => !wholes.has(idOf(cover))))
    next = chosenOf(distinctOf(alternating(open)), clock, width)
  }
  return { wholes: sorted(), first: reference(), isComplete: true }
}

const isRun = ({ seconds }: Whole): boolean => seconds.every(Number.isFinite)

export const geometricMean = (values: readonly number[]): number =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)

/** Takes the fastest plan if it gains, and joins the changes of all that gain. */
function advance(
  problem: Problem,
  front: Front,
  timed: readonly Whole[],
  fastest: Whole | undefined,
  scoreOf: (whole: Whole, aim: Aim) => number,
): void {
  const { aim, best } = front
  const gains = (whole: Whole, from: Whole): boolean => scoreOf(whole, aim) < scoreOf(from, aim) * (1 - leastGain)
  const faster =
    best === undefined ? [] : timed.filter((each) => gains(each, best)).sort((a, b) => scoreOf(a, aim) - scoreOf(b, aim))
  const covers = faster.map(({ cover }) => cover)
  front.together = best === undefined || covers.length < 2 ? undefined : combined(problem, best.cover, covers, aim.cost)
  if (fastest !== undefined && (best === undefined || gains(fastest, best))) front.best = fastest
}

/** The plans to try from the best of a front, those of the lowest cost first. */
function triedFrom(problem: Problem, { best, aim, together }: Front, within: number): readonly Found[] {
  if (best === undefined) return []
  const around = neighboursOf(problem, best.cover, aim.cost).filter(({ ratio }) => ratio < within)
  return [...(together === undefined ? [] : [together]), ...around.map(({ cover }) => cover)]
}

/** The first of each list, then the second of each, and so on. */
const alternating = <T>(lists: readonly (readonly T[])[]): readonly T[] =>
  Array.from({ length: Math.max(0, ...lists.map(({ length }) => length)) }, (_, at) =>
    lists.flatMap((list) => list.slice(at, at + 1)),
  ).flat()

/** Plans that are ready, while others are made so; any, if none is. */
function chosenOf(covers: readonly Found[], clock: WholeClock, width: number): readonly Found[] {
  const isReady = (cover: Found): boolean => clock.isReady?.(cover) ?? true
  const ready = covers.filter(isReady)
  clock.prepare?.(covers.filter((cover) => !isReady(cover)).slice(0, width))
  return (ready.length > 0 ? ready : covers).slice(0, width)
}

/** Times covers beside the best one, in relation to which their times count: a device slows down and speeds up again in minutes. */
async function timeBeside(
  best: Whole | undefined,
  covers: readonly Found[],
  clock: WholeClock,
  known: (cover: Found) => readonly number[] | undefined,
): Promise<readonly Whole[]> {
  const open = covers.filter((cover) => known(cover) === undefined)
  const beside = best === undefined ? [] : [best.cover]
  const times = open.length === 0 ? [] : await clock.time([...beside, ...open])
  const scale = (best?.seconds ?? []).map((seconds, shape) => seconds / (times[0]?.[shape] ?? seconds))
  const own = times.slice(beside.length)
  return covers.flatMap((cover): Whole[] => {
    const seconds = known(cover) ?? own[open.indexOf(cover)]?.map((each, shape) => each * (scale[shape] ?? 1))
    return seconds === undefined ? [] : [{ cover, seconds }]
  })
}
