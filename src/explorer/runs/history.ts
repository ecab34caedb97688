/** Histories of suites for the page: a chart per type and shape, and the changes in words. */
import { commitText, type HistoryEntry } from '../../bench/history/entry.js'
import { type Change, type Series, seriesOf } from '../../bench/history/regressions.js'
import { changeText } from '../../bench/history/text.js'
import { summarise } from '../../bench/statistics.js'
import { clockText, shapeText } from '../../bench/suite/result.js'
import type { HistoryView } from '../model.js'

/** Groups of entries with comparable times: those of a suite on a device by a clock. */
function groupsOf(entries: readonly HistoryEntry[]): readonly (readonly HistoryEntry[])[] {
  const groups = new Map<string, HistoryEntry[]>()
  for (const entry of entries) {
    const key = [entry.suite, entry.clock, entry.device.name].join('\n')
    const group = groups.get(key) ?? []
    groups.set(key, [...group, entry])
  }
  return [...groups.values()]
}

const aboutOf = ({ at, commit, versions, state = {} }: HistoryEntry): string =>
  [
    ...(commit === undefined ? [] : [`${commit.id}${commit.changed ? ' with uncommitted changes' : ''}`]),
    at,
    ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
    ...Object.entries(state).map(([name, value]) => `${name} ${value}`),
  ].join(', ')

const isSame = (a: Omit<Series, 'runs'>, b: Omit<Series, 'runs'>): boolean =>
  [a.suite, a.clock, a.device, a.dtype, a.plan, shapeText(a.dims)].join('\n') ===
  [b.suite, b.clock, b.device, b.dtype, b.plan, shapeText(b.dims)].join('\n')

function seriesView(series: Series, entries: readonly HistoryEntry[], changes: readonly Change[]): HistoryView['series'][number] {
  const indexOf = (at: number): number => {
    const run = series.runs[at]
    return run === undefined ? -1 : entries.indexOf(run.entry)
  }
  return {
    plan: series.plan,
    panel: `${series.dtype} ${shapeText(series.dims)}`,
    points: series.runs.map(({ cell }, i) => {
      const { median, low, high } = summarise(cell.samples)
      return { run: indexOf(i), median: 1000 * median, low: 1000 * low, high: 1000 * high }
    }),
    changes: changes
      .filter((change) => isSame(change, series))
      .map(({ at, verdict, ratio }) => ({ run: indexOf(at), verdict, ratio })),
  }
}

/** One view per suite, clock and device, the one with the newest run first. */
export function historyViews(entries: readonly HistoryEntry[], changes: readonly Change[]): HistoryView[] {
  return [...groupsOf(entries)].reverse().flatMap((group): HistoryView[] => {
    const last = group.at(-1)
    if (last === undefined) return []
    const own = changes.filter(
      ({ suite, clock, device }) => suite === last.suite && clock === last.clock && device === last.device.name,
    )
    const facts = Object.entries(last.device.facts).map(([name, value]) => ({ name, value: String(value) }))
    return [
      {
        title: `${last.suite} on ${last.device.name}`,
        facts: [{ name: 'subject', value: last.subject }, { name: 'clock', value: clockText(last.clock) }, ...facts],
        runs: group.map((entry) => ({ label: commitText(entry), about: aboutOf(entry) })),
        series: seriesOf(group).map((series) => seriesView(series, group, own)),
        changes: own
          .toSorted((a, b) => b.at - a.at || b.ratio - a.ratio)
          .map((change) => ({ verdict: change.verdict, text: changeText(change), by: change.by })),
      },
    ]
  })
}
