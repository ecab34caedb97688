/** The tables of the guide that compare launches of FasterTransformer and FasterLLaMA with those of plans: names and counts match the plans. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { beamStep } from '../../specs/graphs/beam.js'
import { decoderNorm, keepBeams } from '../../specs/graphs/decoder.js'
import type { Graph } from '../../src/ir/graph.js'
import { textOf } from './pages.js'

const { plans } = JSON.parse(readFileSync('generated/manifest.json', 'utf8')) as {
  readonly plans: Readonly<Record<string, Readonly<Record<string, Graph>>>>
}
/** Graphs that plans do not change. */
const others: Readonly<Record<string, Graph>> = Object.fromEntries(
  [beamStep, decoderNorm, keepBeams].map(({ name, graph }) => [name, graph]),
)

interface Table {
  readonly title: string
  readonly plan: string
  readonly graphs: readonly string[]
  /** The numbers of the title: launches of the plan and, if stated, of the original. */
  readonly launches: number
  readonly theirs: number | undefined
  /** Names in the two columns. */
  readonly seed: readonly string[]
  readonly own: readonly string[]
}

const codes = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

/** The tables of a page under titles that name a plan and its graphs. */
function tablesOf(page: string): Table[] {
  return page
    .split('\n### ')
    .slice(1)
    .map((section) => {
      const [title = '', ...lines] = section.split('\n')
      const [plan = '', ...graphs] = codes(title)
      const [launches = Number.NaN, theirs] = [...title.matchAll(/(\d+) launches|has (\d+)$/g)].map(([, a, b]) => Number(a ?? b))
      const rows = lines
        .filter((line) => line.startsWith('| '))
        .slice(1)
        .map((line) => line.split(' | '))
      const column = (at: number): string[] => rows.flatMap((row) => codes(row[at] ?? ''))
      return { title, plan, graphs, launches, theirs, seed: column(0), own: column(1) }
    })
}

/** Kernels and matmuls of a planned graph, by their names in the guide. */
const launched = ({ nodes }: Graph): string[] =>
  nodes.flatMap((node) => (node.kind === 'view' ? [] : [node.kind === 'op' ? node.op.replace(/^std\./, '') : node.name]))

/** Errors of a table; empty if there are none. */
function faultsOf({ plan, graphs, launches, theirs, seed, own }: Table): readonly string[] {
  const found = graphs.flatMap((name) => {
    const graph = plans[plan]?.[name] ?? others[name]
    return graph === undefined ? [`there is no ${name}`] : launched(graph)
  })
  return [
    ...(found.toSorted().join() === own.toSorted().join() ? [] : [`the plan launches ${found.join(', ')}`]),
    ...(launches === found.length ? [] : [`${launches} launches, and there are ${found.length}`]),
    ...(theirs === undefined || theirs === seed.length ? [] : [`${theirs} of theirs, and ${seed.length} are listed`]),
  ]
}

const tables = tablesOf(textOf('src/docs/guides/from-fastertransformer.md'))

it.each(tables)('$title', (table) => {
  expect(faultsOf(table)).toEqual([])
})

it('the plans of both are all there', () => {
  expect([...new Set(tables.map(({ plan }) => plan))]).toEqual([
    'ft-v1',
    'ft-v2.1',
    'ft-v3-mode1',
    'ft-v3-mode2',
    'fasterllama-v1',
  ])
})

it.each<[string, (table: Table) => Table]>([
  ['another number', (table) => ({ ...table, launches: table.launches + 1 })],
  ['another number of theirs', (table) => ({ ...table, theirs: table.seed.length - 1 })],
  ['a launch too few', (table) => ({ ...table, own: table.own.slice(1) })],
  ['another name', (table) => ({ ...table, own: table.own.with(0, 'other') })],
])('a table with %s is found wrong', (_, change) => {
  for (const table of tables) expect(faultsOf(change(table)).length).toBeGreaterThan(0)
})
