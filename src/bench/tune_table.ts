/**
 * Tuning results as text for a terminal: per size, the time of the default without a tuning file (the rules or the library's matmul) next to the best
 * candidate's.
 */
import Table from 'cli-table3'
import { choiceName } from '../schedule/tuning/choice.js'
import { sizeName } from '../schedule/tuning/tuning.js'
import type { TuneResult } from './tune.js'

const style = { head: [], border: [] }
const digits = 3

/** The last part of a candidate's key. */
const shortName = (key: string): string => key.replace(/^.*__/, '')

/** Choices of a result that are written to the tuning file. */
const kept = ({ variants }: TuneResult, rows: number): string =>
  variants
    .filter(({ measured }) => measured.some((at) => at.rows === rows))
    .map(({ choice }) => choiceName(choice))
    .join()

/** Fastest candidate at a number of rows. */
const fastest = (candidates: ReadonlyMap<string, number>): readonly [key: string, time: number] | undefined =>
  [...candidates].sort(([, a], [, b]) => a - b)[0]

/** Table of all results, followed by refused candidates. */
export function tuneTable(results: readonly TuneResult[]): string {
  const head = ['kernel', 'length', 'rows', 'default us', 'best us', 'best', 'saved', 'default GB/s', 'best GB/s', 'kept']
  const table = new Table({ head, style })
  for (const result of results) {
    for (const { rows, rules, bytes, candidates } of result.times) {
      const [key, time] = fastest(candidates) ?? ['rules', rules]
      const rate = (microseconds: number): string => (bytes / microseconds / 1000).toFixed(0)
      table.push([
        `${result.kernel} ${result.dtype}`.trim(),
        sizeName(result),
        rows,
        rules.toPrecision(digits),
        time.toPrecision(digits),
        shortName(key),
        `${(100 * (1 - time / rules)).toFixed(1)} %`,
        rate(rules),
        rate(time),
        kept(result, rows),
      ])
    }
  }
  const refused = results.flatMap(({ refused: list, ...size }) =>
    list.map(({ key, detail }) => `refused ${key} at ${sizeName(size)}: ${detail.split(`${key}: `).at(-1) ?? ''}`),
  )
  return `${[table.toString(), ...refused].join('\n')}\n`
}
