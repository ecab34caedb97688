/**
 * A descent over whole plans: times covers and those that differ from the best of them in one place, the most promising first, and goes on from
 * whichever is faster. Changes that help on their own are tried together. The clock is given: a device, or a table.
 */
import { type Found, type GroupCost, type Problem, wholeId } from './covers.js'
import { combined, neighboursOf } from './neighbours.js'

export interface WholeClock {
  /** Seconds of plans at each shape, timed side by side: infinite for a plan that cannot be run. */
  time(covers: readonly Found[]): Promise<readonly (readonly number[])[]>
  /** True once nothing more can be timed. */
  isOver(): boolean
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

/** Share by which a plan has to be faster than the best so far: less may be noise. */
const leastGain = 0.005

/** @param starts covers to begin with; the first is the reference */
export async function descend(
  problem: Problem,
  starts: readonly Found[],
  cost: GroupCost,
  clock: WholeClock,
  { width = 6, within = 1.06, known = () => undefined, onStep }: DescentSettings = {},
): Promise<Descent> {
  const idOf = (cover: Found): string => problem.shapes.map((_, shape) => wholeId(problem, shape, cover)).join(' ')
  const distinctOf = (covers: readonly Found[]): readonly Found[] => [
    ...new Map(covers.map((cover) => [idOf(cover), cover])).values(),
  ]
  const wholes = new Map<string, Whole>()
  const isTimed = (cover: Found): boolean => wholes.has(idOf(cover))
  const sorted = (): readonly Whole[] => [...wholes.values()].sort((a, b) => scoreOf(a) - scoreOf(b))
  const reference = (): Whole | undefined => [...wholes.values()].find(isRun)
  const scoreOf = ({ seconds }: Whole): number => {
    const from = reference()
    return geometricMean(seconds.map((each, shape) => each / (from?.seconds[shape] ?? each)))
  }
  let best: Whole | undefined
  for (let next = distinctOf(starts); next.length > 0; ) {
    if (clock.isOver()) return { wholes: sorted(), first: reference(), isComplete: false }
    const timed = await timeBeside(best, next, clock, known)
    for (const each of timed) wholes.set(idOf(each.cover), each)
    const before = best
    const first = sorted().find(isRun)
    if (first !== undefined && (before === undefined || scoreOf(first) < scoreOf(before) * (1 - leastGain))) best = first
    await onStep?.(timed, best)
    if (best === undefined) break
    const from = before ?? best
    const faster = timed.filter((each) => scoreOf(each) < scoreOf(from) * (1 - leastGain)).sort((a, b) => scoreOf(a) - scoreOf(b))
    const together =
      faster.length < 2
        ? undefined
        : combined(
            problem,
            from.cover,
            faster.map(({ cover }) => cover),
            cost,
          )
    const around = neighboursOf(problem, best.cover, cost).filter(({ ratio, cover }) => ratio < within && !isTimed(cover))
    const tried = [...(together === undefined || isTimed(together) ? [] : [together]), ...around.map(({ cover }) => cover)]
    next = distinctOf(tried).slice(0, width)
  }
  return { wholes: sorted(), first: reference(), isComplete: true }
}

const isRun = ({ seconds }: Whole): boolean => seconds.every(Number.isFinite)

export const geometricMean = (values: readonly number[]): number =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)

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
