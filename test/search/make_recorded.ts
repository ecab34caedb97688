/**
 * Writes a problem of a search with the times that `heddle search` has stored on a GPU, for `recorded.test.ts`:
 *
 *     node --import ./dist/register.js test/search/make_recorded.ts GRAPH PLAN search.json m=8,n=64 m=64,n=64 > test/search/recorded/GRAPH.json
 */
import { readFileSync } from 'node:fs'
import { dimensions } from '../../src/cli/options.js'
import { searchPath } from '../../src/cli/search_path.js'
import { costDevice } from '../../src/cost/device.js'
import { priceDims } from '../../src/cost/step.js'
import { coverOf } from '../../src/search/chosen.js'
import type { Launch } from '../../src/search/price.js'
import { problemOf } from '../../src/search/problem.js'
import { knownOn, parseRecord } from '../../src/search/record.js'
import type { RecordedFile } from './recorded.js'

const micro = 1e6
const dtype = 'f16'
const short = (value: number): number => Number(value.toPrecision(4))

const [name = '', planName = '', path = '', ...texts] = process.argv.slice(2)
const found = await searchPath(process.cwd())
const graph = found.graphs[name]?.graph
const plan = found.plans.find((each) => each.name === planName && each.graph === name)
const record = parseRecord(readFileSync(path, 'utf8'), path)
const device = record.entries[0]?.device ?? ''
const read = graph === undefined ? undefined : await found.read(graph)
if (graph === undefined || plan === undefined || read === undefined) throw new Error(`no graph ${name} with a plan ${planName}`)

const shapes = texts.map((text) => priceDims(graph, plan.packed, dimensions(text)))
const whole = problemOf(graph, { ...read, shapes, dtype, packed: plan.packed, device: costDevice('h200') })
const known = knownOn(record.entries, device)
const hand = coverOf(whole, plan)
if (hand === undefined) throw new Error(`${planName} has groups that are none of the problem`)

const contents = new Map<string, number>()
const rows = new Map<string, number>()
const launches: RecordedFile['launches'] = []
const rowOf = (own: readonly Launch[]): number => {
  const key = own.map(({ id }) => id).join(' ')
  const before = rows.get(key)
  const [first] = own
  if (before !== undefined || first === undefined) return before ?? -1
  const content = contents.get(first.content) ?? contents.size
  contents.set(first.content, content)
  const times = own
    .map(({ id }) => known.get(id))
    .map((time) => (time !== undefined && 'seconds' in time ? short(time.seconds * micro) : null))
  launches.push([content, first.kind, own.map(({ model }) => short(model * micro)), times])
  rows.set(key, launches.length - 1)
  return launches.length - 1
}
const variants = whole.problem.variants.map(({ reads, groups }) => ({
  reads: reads.map((each) => [...each]),
  groups: groups.map(({ members, launches: own }): [number[], number] => [[...members], rowOf(own)]),
}))
const lines = (values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join(',\n')
const head = {
  graph: name,
  device,
  dtype,
  shapes: whole.problem.shapes,
  hand: { name: planName, variant: hand.variant, chosen: hand.chosen },
}
const forms = variants.map(({ reads, groups }) => `{"reads":${JSON.stringify(reads)},"groups":[\n${lines(groups)}\n]}`)
process.stdout.write(
  `${JSON.stringify(head).slice(0, -1)},"launches":[\n${lines(launches)}\n],"variants":[${forms.join(',')}]}\n`,
)
