/** Time of a pass per kernel. */
import { milliseconds, percent } from '../../bench/table.js'
import type { RunRow, RunTable, Timeline } from '../model.js'

/** An instance key without its storage types: `bias_gelu` for `bias_gelu__f16`. */
export const kernelName = (key: string): string => key.replace(/__.*$/, '')

/** One table per row with separately timed kernels. */
export const profileTables = (rows: readonly RunRow[]): RunTable[] =>
  rows.flatMap(({ name, shape, profile }): RunTable[] => {
    if (profile === undefined || profile.length === 0) return []
    const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
    return [
      {
        title: `Kernels of ${name} ${shape}: ${milliseconds(total)} ms`,
        columns: ['kernel', 'count', 'ms', 'share'],
        rows: profile.map(({ kernel, count, milliseconds: time }) => [
          kernelName(kernel),
          String(count),
          milliseconds(time),
          percent(time / total),
        ]),
      },
    ]
  })

/** @param total milliseconds of the whole step, timed separately */
export function measuredTimeline(title: string, total: number, profile: RunRow['profile']): Timeline[] {
  if (profile === undefined || profile.length === 0) return []
  const spans = profile.map(({ kernel, count, milliseconds: time }) => ({
    name: kernelName(kernel),
    // A step without a generated kernel is a library matmul.
    kind: kernel.startsWith('matmul ') ? 'library matmul' : 'generated kernel',
    count,
    microseconds: 1e3 * time,
  }))
  return [{ title, ordered: false, source: 'measured', total: 1e3 * total, spans }]
}
