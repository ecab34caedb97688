/** What there is to check in a project: kernels of its ops, kernels its plans derive, and graphs under each of their plans. */
import { findingError } from '../../errors.js'
import type { PlannedKernel } from '../../fuse/apply.js'
import { graphFacts } from '../../fuse/facts.js'
import { prepareGraph } from '../../fuse/passes.js'
import type { Graph } from '../../ir/graph.js'
import { canRunWhole, type GraphSubject } from './graphs.js'
import type { SpecKernels } from './specs.js'

export interface Subjects {
  readonly kernels: readonly PlannedKernel[]
  readonly graphs: readonly GraphSubject[]
}

export interface Wanted {
  readonly names?: readonly string[] | undefined
  readonly plan?: string | undefined
  readonly filter?: RegExp | undefined
}

/** The plan of a graph that runs as it is declared. */
const bare = 'unfused'

/** Everything there is. */
export function subjectsOf(specs: SpecKernels): Subjects {
  const { kernels, templates, declared, plans, ops, layouts } = specs
  const byName = new Map(layouts.map((layout) => [layout.name, layout]))
  const planned = plans.flatMap((plan): GraphSubject[] => {
    const graph = specs.graphs[plan.name]?.[plan.graph]
    const source = declared[plan.graph]?.graph ?? Object.values(declared).find((each) => each.graph.name === plan.graph)?.graph
    if (graph === undefined || source === undefined) return []
    return [subject(plan.name, graph, prepareGraph(source, plan, ops, byName), specs)]
  })
  const whole = Object.values(declared).map(({ graph }) => subject(bare, specs.link(graph), graph, specs))
  return { kernels: [...kernels, ...templates], graphs: [...whole, ...planned].filter(canRunWhole) }
}

const subject = (plan: string, planned: Graph, prepared: Graph, { ops }: SpecKernels): GraphSubject => ({
  name: planned.name,
  plan,
  planned,
  prepared,
  facts: graphFacts(prepared, ops),
})

/** What names and a plan leave of it. A graph's name selects what its plans derive for it. @throws finding `check.selection` for a name of nothing */
export function selected(specs: SpecKernels, { names = [], plan }: Wanted): Subjects {
  const all = subjectsOf(specs)
  const unknown = names.find(
    (name) => !(all.kernels.some((kernel) => kernel.name === name) || all.graphs.some((graph) => graph.name === name)),
  )
  if (unknown !== undefined) {
    const there = [...all.kernels, ...all.graphs].map(({ name }) => name)
    throw findingError('check.selection', `there is no op, derived kernel or graph ${unknown}`, {
      hint: there.length === 0 ? 'the project declares none' : `there are ${[...new Set(there)].join(', ')}`,
    })
  }
  const isPlan = (graph: GraphSubject): boolean => plan === undefined || graph.plan === plan
  const graphs = all.graphs.filter((graph) => isPlan(graph) && (names.length === 0 || names.includes(graph.name)))
  if (names.length === 0 && plan === undefined) return all
  const ofGraphs = new Set(
    graphs.flatMap(({ planned }) => planned.nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : []))),
  )
  const kernels = all.kernels.filter(
    ({ name }) =>
      names.includes(name) || (ofGraphs.has(name) && specs.derived.has(name)) || (names.length === 0 && ofGraphs.has(name)),
  )
  return { kernels, graphs }
}

export const matching = (filter: RegExp | undefined, name: string): boolean => filter?.test(name) ?? true
