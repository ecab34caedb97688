/**
 * Change points of a series of runs. Two tests, because a history starts short. Of ten runs and more: E-divisive, a nonparametric test of the distance
 * between distributions by permutations, applied to either side of each change it finds (D. S. Matteson and N. A. James, A nonparametric approach for
 * multiple change point analysis of multivariate data, JASA 109(505), 2014; for performance tests: D. Daly et al., ICPE 2020). Of fewer, and for the
 * newest runs: the first run outside of the spread of those before it. Neither counts a change of medians within the limit.
 */
import { integer, type Random, random } from '../../verify/random.js'
import { summarise } from '../statistics.js'
import { verdictOf } from '../target/baseline.js'

export interface ChangeOptions {
  /** Largest ratio of medians that is no change, such as 1.05. */
  readonly limit: number
  /** True for prices, which have no noise: any ratio beyond the limit is a change. */
  readonly exact?: boolean | undefined
}

export interface ChangePoint {
  /** First run with the new times. */
  readonly at: number
  /** Medians in milliseconds: of the runs before it since the previous change, and of the runs from it to the next. */
  readonly before: number
  readonly now: number
  readonly ratio: number
  /** `run` for the newest run, which no later one confirms. */
  readonly by: 'permutations' | 'runs' | 'run' | 'price'
}

/** Fewest runs of a permutation test, and of either side of a change. */
const fewest = 10
const side = 3
const permutations = 199
/** Probability by chance below which a split counts. */
const significant = 0.01
/** Deviations from the median, in robust standard deviations, that no run has by chance; and the fewest runs that show a spread. */
const [farthest, fewestOfSpread] = [4, 5]

const medianOf = (values: readonly number[]): number => summarise(values).median

/** @param runs samples in milliseconds, the oldest run first */
export function changePoints(runs: readonly (readonly number[])[], options: ChangeOptions): readonly ChangePoint[] {
  const medians = runs.map(medianOf)
  const splits = options.exact === true ? [] : splitsOf(medians.map(Math.log), 0, options.limit)
  const found = stepsOf({ runs, medians, ...options }, splits)
  return found.flatMap(({ at, by }, i): ChangePoint[] => {
    const before = medianOf(medians.slice(found[i - 1]?.at ?? 0, at))
    const now = medianOf(medians.slice(at, found[i + 1]?.at ?? runs.length))
    return isBeyond(now / before, options.limit) ? [{ at, before, now, ratio: now / before, by }] : []
  })
}

const isBeyond = (ratio: number, limit: number): boolean => ratio > limit || ratio < 1 / limit

interface Series extends ChangeOptions {
  readonly runs: readonly (readonly number[])[]
  readonly medians: readonly number[]
}

type Step = Pick<ChangePoint, 'at' | 'by'>

/** The splits, and further runs from which on times are others than those since the last change. */
function stepsOf(series: Series, splits: readonly number[]): readonly Step[] {
  const found: Step[] = []
  for (let at = 1; at < series.runs.length; at++) {
    const by = splits.includes(at) ? 'permutations' : stepAt(series, found, splits, at)
    if (by !== undefined) found.push({ at, by })
  }
  return found
}

/** Test of one run against those since the last change: beyond their spread and the limit, and confirmed by the next run unless it is the newest. */
function stepAt(
  { runs, medians, limit, exact = false }: Series,
  found: readonly Step[],
  splits: readonly number[],
  at: number,
): ChangePoint['by'] | undefined {
  const starts = [0, ...found.map((step) => step.at)]
  const before = medianOf(medians.slice(starts.at(-1), at))
  const most = exact ? limit : Math.max(limit, spreadOf(medians.slice(0, at), starts))
  const ratio = (medians[at] ?? 0) / before
  if (!isBeyond(ratio, most)) return undefined
  if (exact) return 'price'
  const next = medians[at + 1]
  if (next !== undefined) {
    const isConfirmed = !splits.includes(at + 1) && isBeyond(next / before, most) && next > before === ratio > 1
    return isConfirmed ? 'runs' : undefined
  }
  return verdictOf(runs[at] ?? [], runs[at - 1] ?? [], limit)?.verdict === 'same' ? undefined : 'run'
}

/**
 * Ratio that no run exceeds by chance: the median absolute deviation of the logarithms from their stretch's median, scaled to a normal
 * distribution's. 1 if there are too few runs to tell.
 * @param starts of the stretches between changes
 */
function spreadOf(medians: readonly number[], starts: readonly number[]): number {
  const deviations = starts.flatMap((start, i) => {
    const logs = medians.slice(start, starts[i + 1]).map(Math.log)
    const middle = medianOf(logs)
    // A single run has no deviation from itself.
    return logs.length < 2 ? [] : logs.map((value) => Math.abs(value - middle))
  })
  return deviations.length < fewestOfSpread ? 1 : Math.exp(farthest * 1.4826 * medianOf(deviations))
}

/** Sorted splits of a series by permutation tests, recursively. */
function splitsOf(values: readonly number[], offset: number, limit: number): number[] {
  if (values.length < fewest) return []
  const { at, statistic } = bestSplit(values)
  const ratio = Math.exp(medianOf(values.slice(at)) - medianOf(values.slice(0, at)))
  if (!isBeyond(ratio, limit) || chanceOf(values, statistic) > significant) return []
  return [...splitsOf(values.slice(0, at), offset, limit), offset + at, ...splitsOf(values.slice(at), offset + at, limit)]
}

/** Share of permutations of a series whose best split is at least as good. */
function chanceOf(values: readonly number[], statistic: number): number {
  const next = random(`permutations of ${values.length}`)
  let atLeast = 1
  for (let i = 0; i < permutations; i++) if (bestSplit(shuffled(values, next)).statistic >= statistic) atLeast++
  return atLeast / (permutations + 1)
}

/** A random order (Fisher and Yates). */
function shuffled(values: readonly number[], next: Random): number[] {
  const order = [...values]
  for (let i = order.length - 1; i > 0; i--) {
    const j = integer(next, 0, i)
    const [a = 0, b = 0] = [order[i], order[j]]
    order[i] = b
    order[j] = a
  }
  return order
}

/** The split with the largest scaled energy distance between its sides (equation 5 of Matteson and James, with exponent 1). */
export function bestSplit(values: readonly number[]): { readonly at: number; readonly statistic: number } {
  const sumTo = (i: number, from: number, to: number): number => {
    let sum = 0
    for (let j = from; j < to; j++) sum += Math.abs((values[i] ?? 0) - (values[j] ?? 0))
    return sum
  }
  const size = values.length
  let [left, between] = [0, 0]
  let right = 0
  for (let i = 0; i < size; i++) right += sumTo(i, i + 1, size)
  let best = { at: side, statistic: Number.NEGATIVE_INFINITY }
  for (let at = 1; at <= size - side; at++) {
    // One value moves from the right side to the left one.
    const [toLeft, toRight] = [sumTo(at - 1, 0, at - 1), sumTo(at - 1, at, size)]
    left += toLeft
    right -= toRight
    between += toRight - toLeft
    if (at < side) continue
    const [n, m] = [at, size - at]
    const distance = (2 * between) / (n * m) - (2 * left) / (n * (n - 1)) - (2 * right) / (m * (m - 1))
    const statistic = ((n * m) / (n + m)) * distance
    if (statistic > best.statistic) best = { at, statistic }
  }
  return best
}
