/** Changes in a history as text: for a terminal, as Markdown, and as annotations of a GitHub workflow. */
import Table from 'cli-table3'
import { shapeText } from '../suite/result.js'
import type { Change, KernelChange } from './regressions.js'

const us = (milliseconds: number): string => {
  const value = 1000 * milliseconds
  return value >= 1e4 ? value.toFixed(0) : value.toPrecision(4)
}

const kernelText = ({ kernel, before, now }: KernelChange): string =>
  before === 0
    ? `${kernel} (new, ${us(now)} us)`
    : now === 0
      ? `${kernel} (gone, ${us(before)} us)`
      : `${kernel} (${us(before)} to ${us(now)} us)`

const sources: Readonly<Record<Change['by'], string>> = {
  permutations: 'permutation test',
  runs: 'two runs beyond the spread',
  run: 'newest run, not confirmed',
  price: 'price',
}

const head = ['since', 'change', 'suite', 'dtype', 'shape', 'plan', 'before us', 'now us', 'ratio', 'kernels', 'by']

const rowOf = (change: Change): string[] => [
  change.since,
  change.verdict,
  change.suite,
  change.dtype,
  shapeText(change.dims),
  change.plan,
  us(change.before),
  us(change.now),
  change.ratio.toFixed(3),
  change.kernels.map(kernelText).join(', ') || '-',
  sources[change.by],
]

/** Counts of a history for its first line. */
export interface HistoryCounts {
  readonly runs: number
  readonly suites: number
}

const counted = ({ runs, suites }: HistoryCounts, changes: readonly Change[]): string =>
  `${runs} ${runs === 1 ? 'run' : 'runs'} of ${suites} ${suites === 1 ? 'suite' : 'suites'}, ${changes.length === 0 ? 'no change' : changes.length === 1 ? '1 change' : `${changes.length} changes`}`

export function historyText(counts: HistoryCounts, changes: readonly Change[]): string {
  if (changes.length === 0) return `${counted(counts, changes)}\n`
  const chars = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' }
  const table = new Table({ head, chars, style: { head: [], border: [] } })
  for (const change of changes) table.push(rowOf(change))
  return `${counted(counts, changes)}\n${table.toString()}\n`
}

export function historyMarkdown(counts: HistoryCounts, changes: readonly Change[]): string {
  const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const lines =
    changes.length === 0 ? [] : ['', row(head), row(head.map(() => '---')), ...changes.map((each) => row(rowOf(each)))]
  return `${[counted(counts, changes), ...lines].join('\n')}\n`
}

/** One sentence, which names what is slower. */
export const changeText = (change: Change): string => {
  const { plan, dtype, dims, verdict, ratio, before, now, kernels } = change
  const named = kernels.length === 0 ? '' : `: ${kernels.map(kernelText).join(', ')}`
  return `${plan} ${dtype} ${shapeText(dims)} is ${verdict}, ${ratio.toFixed(2)} times (${us(before)} to ${us(now)} us) since ${change.since}${named}`
}

/** Escapes of workflow commands, as the toolkit of GitHub Actions writes them: in messages, and in properties. */
const message = (text: string): string => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
const property = (text: string): string => message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

/** `::warning file=bench.ts,title=...::...` of each new regression, and `::notice` of other changes that are new. */
export const annotations = (changes: readonly Change[]): string =>
  changes
    .filter(({ isNew }) => isNew)
    .map((change) => {
      const level = change.verdict === 'slower' ? 'warning' : 'notice'
      return `::${level} file=${property(change.file)},title=${property(`heddle bench ${change.suite}`)}::${message(changeText(change))}\n`
    })
    .join('')
