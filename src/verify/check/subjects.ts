/** Subjects of a project's check: kernels of its ops, kernels derived by its plans, and graphs and programs under each of their plans. */
import { usageError } from '../../errors.js'
import { graphFacts } from '../../fuse/facts.js'
import { prepareGraph } from '../../fuse/passes.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { Graph } from '../../ir/graph.js'
import { kernelName } from '../../ir/op_name.js'
import type { Application, Program } from '../../ir/program.js'
import { inlinedName, inlineProgram } from '../../program/inline.js'
import { type GraphSubject, whyApart } from './graphs.js'
import type { ProgramSubject } from './program_size.js'
import { whyProgramApart } from './programs.js'
import type { SpecKernels } from './specs.js'

export interface Subjects {
  readonly kernels: readonly PlannedKernel[]
  readonly graphs: readonly GraphSubject[]
  readonly programs: readonly ProgramSubject[]
  /** Graphs and programs that are not checked as a whole, only their kernels. */
  readonly apart: readonly Apart[]
}

/** A graph or program under a plan that cannot be checked as a whole, and the reason. */
export interface Apart {
  readonly name: string
  readonly plan: string
  readonly reason: string
  readonly graphs: readonly Graph[]
}

export interface Wanted {
  readonly names?: readonly string[] | undefined
  readonly plan?: string | undefined
  readonly filter?: RegExp | undefined
}

/** Plan name of a graph that runs as declared. */
const bare = 'unfused'

/** All subjects of a project. */
export function subjectsOf(specs: SpecKernels): Subjects {
  const { kernels, templates, declared, resolved, ops, layouts } = specs
  const byName = new Map(layouts.map((layout) => [layout.name, layout]))
  const planned = resolved.flatMap((plan): GraphSubject[] => {
    const graph = specs.graphs[plan.name]?.[plan.graph]
    const source = declared[plan.graph]?.graph ?? Object.values(declared).find((each) => each.graph.name === plan.graph)?.graph
    if (graph === undefined || source === undefined) return []
    const groups = plan.groups.flatMap(({ occurrences }) => occurrences)
    return [subject(plan.name, graph, prepareGraph(source, plan, ops, byName), specs, groups)]
  })
  const whole = Object.values(declared).map(({ graph }) => subject(bare, specs.link(graph), graph, specs, []))
  const graphs = [...whole, ...planned]
  const programs = programsOf(specs)
  const apart = [
    ...graphs.flatMap((each) => leftOut(each, whyApart(each), [each.planned])),
    ...programs.flatMap((each) => leftOut(each, whyProgramApart(each), Object.values(each.compiled.graphs))),
  ]
  return {
    kernels: [...kernels, ...templates],
    graphs: graphs.filter((each) => whyApart(each) === undefined),
    programs: programs.filter((each) => whyProgramApart(each) === undefined),
    apart,
  }
}

const leftOut = ({ name, plan }: Pick<Apart, 'name' | 'plan'>, reason: string | undefined, graphs: readonly Graph[]): Apart[] =>
  reason === undefined ? [] : [{ name, plan, reason, graphs }]

/** Programs under their plans. The facts of a program are those of its nodes under any plan. */
function programsOf({ programs, ops, plans, resolved, declared }: SpecKernels): ProgramSubject[] {
  const known = new Map<Program, Pick<ProgramSubject, 'inlined' | 'facts'>>()
  return programs.map(({ program, compiled }) => {
    const { name, plan } = compiled
    const inlined = known.get(program)?.inlined ?? inlineProgram(program)
    const facts = known.get(program)?.facts ?? graphFacts(inlined, ops)
    known.set(program, { inlined, facts })
    const graphs = new Set(Object.values(compiled.graphs).map((graph) => graph.name))
    const dtypes = plans.find((decl) => decl.name === plan && decl.dtypes !== undefined && graphs.has(decl.graph))?.dtypes
    const groups = program.nodes.flatMap((node) => (node.kind === 'view' ? [] : groupsIn(node, plan, resolved, declared)))
    return { name, plan, program, compiled, inlined, facts, dtypes, groups }
  })
}

/** The groups of an application's nodes under a plan, by their names in the inlined program. */
const groupsIn = (
  { graph, label }: Application,
  name: string,
  plans: SpecKernels['plans'],
  declared: SpecKernels['declared'],
): ProgramSubject['groups'] =>
  plans
    .filter((plan) => plan.name === name && (declared[plan.graph]?.graph.name ?? plan.graph) === graph.name)
    .flatMap((plan) => plan.groups.flatMap(({ occurrences }) => occurrences))
    .map((nodes) => nodes.map((node) => inlinedName(label, node)))

const subject = (
  plan: string,
  planned: Graph,
  prepared: Graph,
  { ops }: SpecKernels,
  groups: GraphSubject['groups'],
): GraphSubject => ({ name: planned.name, plan, planned, prepared, facts: graphFacts(prepared, ops), groups })

/**
 * The subjects selected by names and a plan. The name of a graph or program also selects its derived kernels.
 * @throws usage `check.selection` for an unknown name
 */
export function selected(specs: SpecKernels, { names = [], plan }: Wanted): Subjects {
  const all = subjectsOf(specs)
  const everything = [...all.kernels, ...all.graphs, ...all.programs, ...all.apart]
  const unknown = names.find((name) => !everything.some((each) => each.name === name))
  if (unknown !== undefined) {
    throw usageError('check.selection', `there is no op, derived kernel, graph or program ${unknown}`, {
      hint:
        everything.length === 0
          ? 'the project declares none'
          : `there are ${[...new Set(everything.map(({ name }) => name))].join(', ')}`,
    })
  }
  if (names.length === 0 && plan === undefined) return all
  const isWanted = (each: { readonly name: string; readonly plan: string }): boolean =>
    (plan === undefined || each.plan === plan) && (names.length === 0 || names.includes(each.name))
  const [graphs, programs, apart] = [all.graphs.filter(isWanted), all.programs.filter(isWanted), all.apart.filter(isWanted)]
  const used = [
    ...graphs.map(({ planned }) => planned),
    ...programs.flatMap(({ compiled }) => Object.values(compiled.graphs)),
    ...apart.flatMap((each) => each.graphs),
  ]
  const ofGraphs = new Set(
    used.flatMap(({ nodes }) => nodes.flatMap((node) => (node.kind === 'op' ? [kernelName(node.op)] : []))),
  )
  const kernels = all.kernels.filter(
    ({ name }) =>
      names.includes(name) || (ofGraphs.has(name) && specs.derived.has(name)) || (names.length === 0 && ofGraphs.has(name)),
  )
  return { kernels, graphs, programs, apart }
}

export const matching = (filter: RegExp | undefined, name: string): boolean => filter?.test(name) ?? true
