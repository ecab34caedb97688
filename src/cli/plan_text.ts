/** Reports of plans as text for a terminal. */
import Table from 'cli-table3'
import type { LaunchCost } from '../cost/launch.js'
import type { PlanDecl } from '../lang/plan.js'
import type { PlanDiff, PlanEdge, PlanReport, PlanStep } from '../search/explain.js'

/** Setting of predictions. */
export interface PlanSetting {
  /** Extents of the first dimensions; default: the graph's usual ones. */
  readonly shape?: readonly number[] | undefined
  readonly dtype: string
  readonly device: string
  /** Source of hidden sizes: a known configuration or a model folder; default: the graph's usual sizes. */
  readonly config?: string | undefined
  /** Dimensions by name, which override all others. */
  readonly dims?: Readonly<Record<string, number>> | undefined
}

const style = { head: [], border: [] }

/** Three significant digits, with at most two decimals. */
const short = (value: number): string =>
  value === 0 ? '-' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

const megabytes = (bytes: number): string => short(bytes / 1e6)
const gigaflop = (flops: number): string => short(flops / 1e9)
const microseconds = (value: number): string => value.toFixed(2)

/** Names of a group; a long group is shown by its first and last node. */
const nodeNames = (nodes: readonly string[]): string =>
  nodes.length <= 3 ? nodes.join(', ') : `${nodes[0]} .. ${nodes.at(-1)} (${nodes.length})`

const bytesOf = ({ bytesRead, bytesWritten }: PlanStep): number => bytesRead + bytesWritten

export function heading({ graph }: PlanReport, { shape, dtype, device, config, dims = {} }: PlanSetting): string {
  const given = Object.entries(dims).map(([name, extent]) => `${name}=${extent} `)
  const size = shape === undefined ? '' : `${shape.join('x')} `
  // Given dimensions may replace every usual size.
  const of = config ?? (given.length === 0 ? 'its usual size' : undefined)
  return `${graph}${of === undefined ? '' : ` of ${of}`}, ${size}${given.join('')}${dtype}, predicted for ${device}`
}

const note =
  'Predictions: per launch a fixed time plus the longest of memory traffic, caches and instructions; no overlap of launches.'

function stepsTable(report: PlanReport): string {
  const name = report.instead === undefined ? report.plan : `${report.plan} (${report.instead} at these rows)`
  const table = new Table({ head: [name, 'kind', 'nodes', 'MB', 'GFLOP', 'us'], style })
  for (const step of report.steps) {
    const kind = step.rereads ? `${step.kind}, rereads` : step.kind
    table.push([
      step.kernel,
      kind,
      nodeNames(step.nodes),
      megabytes(bytesOf(step)),
      gigaflop(step.flops),
      microseconds(step.microseconds),
    ])
    if (step.parts.length > 1) table.push(...step.parts.map(partRow))
  }
  return table.toString()
}

/** A launch of a kernel that is several. */
const partRow = ({ name, program, bytesRead, bytesWritten, bound, seconds }: LaunchCost): string[] => [
  `  ${name}`,
  `${programWords[program]}, ${boundWords[bound]}`,
  '',
  megabytes(bytesRead + bytesWritten),
  '-',
  microseconds(seconds * 1e6),
]

const programWords: Readonly<Record<LaunchCost['program'], string>> = {
  elementwise: 'elements',
  rows: 'rows',
  columns: 'columns',
  totals: 'totals',
  matmul: 'matmul',
}

/** Resource that a launch waits for most of its time, in words. */
export const boundWords: Readonly<Record<LaunchCost['bound'], string>> = {
  launch: 'bound by the launch',
  memory: 'bound by memory',
  caches: 'bound by caches',
  instructions: 'bound by instructions',
  arithmetic: 'bound by arithmetic',
}

function totalsLine({ totals: { kernels, matmuls, launches, bytes, flops, microseconds: time } }: PlanReport): string {
  const work = `${megabytes(bytes)} MB moved, ${gigaflop(flops)} GFLOP, ${microseconds(time)} us`
  return `${kernels} kernels and ${matmuls} library matmuls: ${launches} launches, ${work}`
}

const why = ({ gain, reason }: PlanEdge): string =>
  gain === undefined || gain < 0.005 ? reason : `${reason} (${microseconds(gain)} us)`

function edgesText(edges: readonly PlanEdge[]): string[] {
  if (edges.length === 0) return []
  return [
    'Edges between steps, and why they are not fused:',
    ...edges.map((edge) => `  ${edge.producer} -> ${edge.consumer}: ${why(edge)}`),
  ]
}

/** Steps, totals and unfused edges. */
export const showText = (report: PlanReport, options: PlanSetting): string =>
  `${[heading(report, options), stepsTable(report), totalsLine(report), ...edgesText(report.edges), note].join('\n')}\n`

const describeStep = (step: PlanStep): string =>
  `${step.kernel}: ${nodeNames(step.nodes)} (${microseconds(step.microseconds)} us)`

/** Differences side by side, and totals. */
export function diffText({ a, b, differences }: PlanDiff, options: PlanSetting): string {
  const table = new Table({ head: [a.plan, b.plan], style })
  for (const { a: left, b: right } of differences)
    table.push([left.map(describeStep).join('\n'), right.map(describeStep).join('\n')])
  const sums = new Table({ head: ['', a.plan, b.plan, 'ratio'], style })
  const row = (name: string, one: number, other: number, print: (value: number) => string): void => {
    sums.push([name, print(one), print(other), one === 0 ? '-' : (other / one).toFixed(2)])
  }
  row('kernels', a.totals.kernels, b.totals.kernels, String)
  row('library matmuls', a.totals.matmuls, b.totals.matmuls, String)
  row('launches', a.totals.launches, b.totals.launches, String)
  row('MB moved', a.totals.bytes, b.totals.bytes, megabytes)
  row('predicted us', a.totals.microseconds, b.totals.microseconds, microseconds)
  const groups = differences.length === 0 ? 'Both have the same groups.' : table.toString()
  return `${[heading(a, options), groups, sums.toString(), note].join('\n')}\n`
}

export interface PlanLine {
  readonly name: string
  /** True if the project declares it. */
  readonly own: boolean
  readonly text: string
  readonly graphs: readonly string[]
}

/** Short description of graphs: up to two names, or the prefixes of more. */
function familyOf(graphs: readonly string[]): string {
  if (graphs.length <= 2) return graphs.join(', ')
  const beginnings = [...new Set(graphs.map((name) => name.split('_')[0] ?? name))]
  const shown = beginnings.slice(0, 3).map((name) => (graphs.includes(name) ? name : `${name}_*`))
  return `${shown.join(', ')}${beginnings.length > 3 ? ', ...' : ''} (${graphs.length} graphs)`
}

/** Line per plan: the project's first, then the reference, then shipped ones. */
export function describePlans(plans: readonly PlanDecl[], ours: readonly PlanDecl[]): readonly PlanLine[] {
  const own = [...new Set(ours.map(({ name }) => name))]
  const others = plans.map(({ name }) => name).filter((name) => !own.includes(name))
  return [...new Set([...own, 'unfused', ...others])].map((name) => {
    const named = plans.filter((plan) => plan.name === name)
    const about = { name, own: own.includes(name), graphs: named.map(({ graph }) => graph) }
    if (named.length === 0) return { ...about, text: 'one kernel per node: the reference' }
    const target = named.find(({ auto }) => auto !== undefined)?.auto
    const traits = [
      target === undefined ? 'written groups' : `groups searched for ${target.device}`,
      ...(named.some(({ packed }) => packed !== undefined) ? ['packed tokens'] : []),
      ...(named.some(({ stacked }) => (stacked ?? []).length > 0) ? ['stacked weights'] : []),
      ...(named.some(({ library }) => library !== undefined) ? ["the library's epilogues"] : []),
    ]
    return { ...about, text: traits.join(', ') }
  })
}

/** Text with one line per plan, the project's separate from shipped ones. */
export function listText(lines: readonly PlanLine[]): string {
  const family = lines.map(({ graphs }) => (graphs.length === 0 ? 'any graph' : familyOf(graphs)))
  const [wide, wider] = [lines.map(({ name }) => name), family].map((texts) => Math.max(...texts.map(({ length }) => length)) + 2)
  const lineOf = ({ name, text }: PlanLine, i: number): string =>
    `  ${name.padEnd(wide ?? 0)}${(family[i] ?? '').padEnd(wider ?? 0)}${text}`
  const written = lines.map((line, i) => ({ own: line.own, text: lineOf(line, i) }))
  const section = (title: string, own: boolean): string[] => {
    const found = written.filter((line) => line.own === own).map(({ text }) => text)
    return found.length === 0 ? [] : [title, ...found]
  }
  const titled = [...section("the project's:", true), ...section('shipped:', false)]
  return `${titled.join('\n')}\n`
}
