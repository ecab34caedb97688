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

/** Table of whole plans, the verdict, and the next step. */
export function resultText(found: SearchVerbResult): string {
  const { result, verdict, plans, stays, incumbent, shapes, files, wrong, skipped } = found
  const lines: string[] = []
  const [chosen] = plans
  if (verdict !== undefined && chosen !== undefined) {
    const at = stays ? 1 : verdict.place
    const table = new Table({
      head: ['shape', `${incumbent} us`, `${chosen.plan.name} us`, 'ratio'],
      style: { head: [], border: [] },
    })
    for (const [shape, dims] of shapes.entries()) {
      const [before, now] = [verdict.medians[0]?.[shape] ?? Number.NaN, verdict.medians[at]?.[shape] ?? Number.NaN]
      table.push([sizeText(dims), (before * 1000).toFixed(1), (now * 1000).toFixed(1), (now / before).toFixed(3)])
    }
    lines.push(table.toString())
  }
  lines.push(`${result.measured} of ${result.launches} launches measured; ${endings[result.ended]}`)
  lines.push(...wrong.map((each) => `left out, since its result differs: ${each}`))
  lines.push(...skipped.map((each) => `not measured this time: ${each}`))
  lines.push(
    stays
      ? `${incumbent} stays: no plan is faster by more than 2 %`
      : `written: ${files.join(', ')}; list it among the plans of specs/index.ts, then run heddle gen and heddle check`,
  )
  return `${lines.join('\n')}\n`
}
