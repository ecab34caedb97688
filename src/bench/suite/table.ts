/** A suite as one table: for a terminal, as Markdown for a pull request, or as CSV. Every column has one unit. */
import Table from 'cli-table3'
import { meansOf, type PlanMean, type Rated, rated, type SuiteResult, shapeText } from './result.js'

/** Four significant digits, or all integer digits: in microseconds, so that a column has one unit. */
function microseconds(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return ''
  const value = 1000 * milliseconds
  return value >= 1e4 ? value.toFixed(0) : value.toPrecision(4)
}

const ratioText = (ratio: number | undefined): string => ratio?.toFixed(3) ?? ''

interface Grid {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** Columns that any cell of the suite has. */
function cellsGrid(result: SuiteResult, mark: string): Grid {
  const all = rated(result)
  const { versus, predictedOn = '' } = result
  const isModel = result.clock.startsWith('model ')
  const columns: readonly (readonly [head: string, of: (cell: Rated) => string, isShown?: boolean])[] = [
    ['dtype', ({ dtype }) => dtype],
    ['shape', ({ dims }) => shapeText(dims)],
    ['plan', ({ plan }) => plan],
    [isModel ? 'predicted us' : 'median us', ({ milliseconds }) => microseconds(milliseconds.median)],
    ['low us', ({ milliseconds }) => microseconds(milliseconds.low), !isModel],
    ['high us', ({ milliseconds }) => microseconds(milliseconds.high), !isModel],
    [`/ ${versus}`, ({ ratio }) => ratioText(ratio)],
    ['best', ({ best }) => (best ? mark : '')],
    [`${predictedOn} predicted us`, ({ predicted }) => microseconds(predicted), !isModel],
    [`predicted / ${versus}`, ({ predictedRatio }) => ratioText(predictedRatio), !isModel],
    ['floor us', ({ floor }) => microseconds(floor), !isModel],
    ['launches', ({ launches }) => (launches === undefined ? '' : String(launches))],
  ]
  const shown = columns.filter(([, of, isShown = true]) => isShown && all.some((cell) => of(cell) !== ''))
  return { head: shown.map(([head]) => head), rows: all.map((cell) => shown.map(([, of]) => of(cell))) }
}

function meansGrid(result: SuiteResult): Grid {
  const means = meansOf(result)
  const hasTypes = means.some(({ dtype }) => dtype !== undefined)
  const hasPrices = means.some(({ predictedRatio }) => predictedRatio !== undefined)
  return {
    head: [
      'plan',
      ...(hasTypes ? ['dtype'] : []),
      `geometric mean / ${result.versus}`,
      ...(hasPrices ? ['of predictions'] : []),
      'best at',
    ],
    rows: means.map(({ plan, dtype, ratio, predictedRatio, best, timed }: PlanMean) => [
      plan,
      ...(hasTypes ? [dtype ?? 'all'] : []),
      ratioText(ratio),
      ...(hasPrices ? [ratioText(predictedRatio)] : []),
      `${best} of ${timed}`,
    ]),
  }
}

function boxed({ head, rows }: Grid): string {
  // Without lines between rows, a suite of forty cells fits a screen.
  const chars = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' }
  const table = new Table({ head: [...head], chars, style: { head: [], border: [] } })
  for (const row of rows) table.push([...row])
  return table.toString()
}

const cellText = (text: string): string => text.replaceAll('|', '\\|')
const markdownRow = (cells: readonly string[]): string => `| ${cells.map(cellText).join(' | ')} |`

const markdownGrid = ({ head, rows }: Grid): string =>
  [markdownRow(head), markdownRow(head.map(() => '---')), ...rows.map(markdownRow)].join('\n')

const problemLines = ({ problems }: SuiteResult): string[] =>
  Object.entries(problems).map(([peer, problem]) => `${peer} was not timed: ${problem}.`)

const title = ({ suite, device }: SuiteResult): string => `${suite} on ${device}`

export function suiteText(result: SuiteResult): string {
  const lines = [title(result), boxed(cellsGrid(result, '*')), boxed(meansGrid(result)), ...result.notes, ...problemLines(result)]
  return `${lines.join('\n')}\n`
}

export function suiteMarkdown(result: SuiteResult): string {
  const notes = [...result.notes, ...problemLines(result)].map((note) => `- ${note}`)
  const parts = [`### ${title(result)}`, markdownGrid(cellsGrid(result, '**best**')), markdownGrid(meansGrid(result))]
  return `${[...parts, notes.join('\n')].join('\n\n')}\n`
}

const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** One line per cell, with all digits; RFC 4180, apart from its line ends. Suites of a file share the head. */
export function suiteCsv(results: readonly SuiteResult[]): string {
  const head = [
    'suite,subject,device,clock,dtype,shape,plan,peer,median_us,low_us,high_us,best_us,samples,versus,ratio,is_best',
    'predicted_on,predicted_us,predicted_ratio,floor_us,launches',
  ].join()
  const us = (value: number | undefined): string => (value === undefined ? '' : String(1000 * value))
  const rows = results.flatMap((result) =>
    rated(result).map((cell) =>
      [
        ...[result.suite, result.subject, result.device, result.clock, cell.dtype, shapeText(cell.dims), cell.plan],
        ...[cell.peer, us(cell.milliseconds.median), us(cell.milliseconds.low), us(cell.milliseconds.high)],
        ...[us(cell.milliseconds.best), cell.milliseconds.samples, result.versus, cell.ratio ?? '', cell.best],
        ...[result.predictedOn ?? '', us(cell.predicted), cell.predictedRatio ?? '', us(cell.floor), cell.launches ?? ''],
      ]
        .map((value) => quoted(String(value)))
        .join(),
    ),
  )
  return `${[head, ...rows].join('\n')}\n`
}
