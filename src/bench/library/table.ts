/** Results of `heddle tune --library`, as text for a terminal. */
import Table from 'cli-table3'
import type { LibraryResult } from './measure.js'

const style = { head: [], border: [] }
const digits = 3

/** Number of steps named per matmul; the rest is counted. */
const named = 2

const usedText = (used: readonly string[]): string =>
  [...used.slice(0, named), ...(used.length > named ? [`${used.length - named} more`] : [])].join(', ')

const microseconds = (time: { readonly median: number } | undefined): string => time?.median.toPrecision(digits) ?? ''

/** Saved share of the time; empty if no algorithm is selected. */
const savedText = ({ first, best, kept }: LibraryResult): string =>
  first === undefined || best === undefined || kept === undefined
    ? ''
    : `${(100 * (1 - best.median / first.median)).toFixed(1)} %`

/** Table of all results, followed by refused algorithms. */
export function libraryTable(results: readonly LibraryResult[]): string {
  const head = ['matmul', 'batch x m x n x k', 'of', 'offered', 'first us', 'best us', 'saved', 'kept']
  const table = new Table({ head, style })
  for (const result of results) {
    const [types = '', , ...rest] = result.matmul.split(', ')
    const epilogue = rest.filter((part) => !/^(a|b|out) /.test(part))
    const { first, best, kept, offered } = result
    const what = first === undefined ? 'not supported' : (kept?.config ?? 'the first')
    const sizes = result.extents.join(' x ')
    table.push([
      [types, ...epilogue].join(', '),
      sizes,
      usedText(result.used),
      offered,
      microseconds(first),
      microseconds(best),
      savedText(result),
      what,
    ])
  }
  const refused = results.flatMap((result) =>
    result.refused.map(({ algorithm, detail }) => `refused ${algorithm} of ${result.matmul}: ${detail}`),
  )
  return `${[table.toString(), ...refused].join('\n')}\n`
}
