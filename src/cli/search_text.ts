/** Result of `heddle search` as text: the plans at each shape, and what was written. */
import Table from 'cli-table3'
import type { SearchVerbResult } from './search_options.js'

const endings = {
  bound: 'no other group can be expected to be in a better plan',
  settled: 'the best plan stayed the best',
  time: 'time is over: the same command goes on',
} as const

const sizeText = (dims: Readonly<Record<string, number>>): string =>
  Object.entries(dims)
    .map(([dim, extent]) => `${dim}=${extent}`)
    .join(' ')

/** Microseconds of whole plans at each shape, and those of the found one in relation to the others. */
function tableOf({ compared, shapes }: SearchVerbResult): string {
  const [before, found, ...beside] = compared
  const others = [before, ...beside].flatMap((each) => each ?? [])
  const head = ['shape', ...[...others, found].map((each) => `${each?.name} us`), ...others.map(({ name }) => `to ${name}`)]
  const table = new Table({ head, style: { head: [], border: [] } })
  const micro = (milliseconds: number | undefined): string =>
    milliseconds === undefined ? 'not possible' : (milliseconds * 1000).toFixed(1)
  for (const [shape, dims] of shapes.entries()) {
    const own = found?.medians?.[shape]
    const ratios = others.map(({ medians }) => ((own ?? Number.NaN) / (medians?.[shape] ?? Number.NaN)).toFixed(3))
    table.push([sizeText(dims), ...[...others, found].map((each) => micro(each?.medians?.[shape])), ...ratios])
  }
  return table.toString()
}

/** Table of whole plans, the verdict, and the next step. */
export function resultText(found: SearchVerbResult): string {
  const { result, compared, wholes, stays, incumbent, files, wrong, skipped } = found
  const lines = compared.length === 0 ? [] : [tableOf(found)]
  lines.push(`${result.measured} of ${result.launches} launches measured, ${wholes} whole plans; ${endings[result.ended]}`)
  lines.push(...wrong.map((each) => `left out, since its result differs: ${each}`))
  lines.push(...skipped.map((each) => `not measured this time: ${each}`))
  lines.push(
    stays
      ? `${incumbent} stays: no plan is faster by more than 2 %`
      : `written: ${files.join(', ')}; list it among the plans of specs/index.ts, then run heddle gen and heddle check`,
  )
  return `${lines.join('\n')}\n`
}

/** The parts of a result that are data. */
export function dataOf({
  result,
  plans,
  compared,
  wholes,
  stays,
  wrong,
  skipped,
  graph,
  device,
  dtype,
  shapes,
  incumbent,
  files,
}: SearchVerbResult) {
  const { round, measured, launches, ended } = result
  return {
    graph,
    device,
    dtype,
    shapes,
    incumbent,
    stays,
    rounds: round,
    measured,
    launches,
    ended,
    wholes,
    plans,
    compared,
    wrong,
    skipped,
    files,
  }
}
