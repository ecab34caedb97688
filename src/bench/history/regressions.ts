/** Changes in a history by name: the run since which a plan at a shape and type is slower or faster, and the kernels that account for it. */
import type { SuiteClock } from '../suite/result.js'
import { type ChangePoint, changePoints } from './change_points.js'
import { commitText, type HistoryCell, type HistoryEntry, seriesKey } from './entry.js'

/** A cell of a run. */
interface Timed {
  readonly entry: HistoryEntry
  readonly cell: HistoryCell
}

export interface Series extends Pick<HistoryCell, 'plan' | 'dtype' | 'dims'> {
  readonly suite: string
  readonly file: string
  readonly clock: SuiteClock
  readonly device: string
  readonly runs: readonly Timed[]
}

export interface KernelChange {
  readonly kernel: string
  /** Milliseconds; 0 for a kernel that a run does not have. */
  readonly before: number
  readonly now: number
}

export interface Change extends Omit<Series, 'runs'>, ChangePoint {
  readonly verdict: 'slower' | 'faster'
  /** First run with the new times, and the one before it, as commits. */
  readonly since: string
  readonly last: string
  /** True if it is the newest run of its suite, clock and device, or at the same commit. */
  readonly isNew: boolean
  /** Kernels with most of the difference, the largest first. */
  readonly kernels: readonly KernelChange[]
}

/** Newest runs that are looked at: a permutation test takes the square of their number. */
const most = 200
/** Smallest share of a change for which a kernel is named, and the largest number of names. */
const [leastShare, mostKernels] = [0.2, 3]

/** Runs by suite, clock, device, type, shape and plan, the oldest first. */
export function seriesOf(entries: readonly HistoryEntry[]): readonly Series[] {
  const found = new Map<string, Series & { readonly runs: Timed[] }>()
  for (const entry of entries) {
    const { suite, file, clock, device } = entry
    for (const cell of entry.cells) {
      const { plan, dtype, dims } = cell
      const key = seriesKey(entry, cell)
      const series = found.get(key) ?? { suite, file, clock, device: device.name, plan, dtype, dims, runs: [] }
      series.runs.push({ entry, cell })
      found.set(key, series)
    }
  }
  return [...found.values()].map((series) => ({ ...series, runs: series.runs.slice(-most) }))
}

/** @param limit largest ratio of medians that is no change */
export function changesOf(all: readonly Series[], limit: number): readonly Change[] {
  return all.flatMap((series) => {
    const { runs, ...about } = series
    const exact = series.clock.startsWith('model ')
    const points = changePoints(
      runs.map(({ cell }) => cell.samples),
      { limit, exact },
    )
    return points.flatMap((point): Change[] => {
      const [last, since] = [runs[point.at - 1], runs[point.at]]
      if (last === undefined || since === undefined) return []
      const newest = runs.at(-1)?.entry
      const isSameCommit = since.entry.commit !== undefined && since.entry.commit.id === newest?.commit?.id
      return [
        {
          ...about,
          ...point,
          verdict: point.ratio > 1 ? 'slower' : 'faster',
          since: commitText(since.entry),
          last: commitText(last.entry),
          isNew: since.entry === newest || (isSameCommit && !since.entry.commit?.changed),
          kernels: kernelChanges(last.cell, since.cell),
        },
      ]
    })
  })
}

/** Kernels whose times account for the difference of two runs. */
export function kernelChanges(last: HistoryCell, since: HistoryCell): readonly KernelChange[] {
  const timeOf = ({ kernels }: HistoryCell, name: string): number =>
    kernels.reduce((sum, [kernel, , milliseconds]) => (kernel === name ? sum + milliseconds : sum), 0)
  const names = [...new Set([...last.kernels, ...since.kernels].map(([kernel]) => kernel))]
  const all = names.map((kernel) => ({ kernel, before: timeOf(last, kernel), now: timeOf(since, kernel) }))
  const sizeOf = ({ before, now }: KernelChange): number => Math.abs(now - before)
  const largest = Math.max(0, ...all.map(sizeOf))
  return all
    .filter((each) => largest > 0 && sizeOf(each) >= leastShare * largest)
    .sort((a, b) => sizeOf(b) - sizeOf(a))
    .slice(0, mostKernels)
}

/** New changes to slower times: those that fail a build. */
export const newRegressions = (changes: readonly Change[]): readonly Change[] =>
  changes.filter(({ verdict, isNew }) => verdict === 'slower' && isNew)
