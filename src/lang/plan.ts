/**
 * Declaration of fusion plans: the nodes of a graph that become one kernel, the nodes that are stacked into one, and the
 * packing of tokens. Node names are checked by the TypeScript compiler, since a graph's type carries them. A plan never
 * changes the results of a token, only grouping and storage.
 */
import { usageError } from '../errors.js'
import { expectArguments, told } from './arguments.js'
import { declaring } from './collected.js'
import type { GraphDecl } from './graph.js'
import { type NamedLayouts, UsedLayouts } from './layout.js'
import { expectAutoParts, expectPlanNames, expectPlanParts } from './plan_parts.js'
import type { AutoPlanConfig, EdgeConfig, EdgeType, PlanConfig, PlanDecl } from './plan_types.js'
import { writtenAt } from './written.js'

export type * from './plan_types.js'

/** Declares a plan over a graph: `plan('ft-v1', encoderLayer, { groups: { bias_gelu: ['fc1Bias', 'gelu'] } })`. */
export function plan<const N extends string, const S extends string = never, const I extends string = never>(
  name: string,
  graph: GraphDecl<N, I>,
  config: PlanConfig<NoInfer<N>, S, NoInfer<I>>,
): PlanDecl {
  return declaring(
    () => declared(name, graph, config),
    () => ({ name, graph: graph?.name ?? '', groups: [] }),
  )
}

function declared<N extends string, S extends string, I extends string>(
  name: string,
  graph: GraphDecl<N, I>,
  config: PlanConfig<NoInfer<N>, S, NoInfer<I>>,
): PlanDecl {
  expectGraph(name, graph, plan)
  const at = `plan ${name}`
  expectArguments('plan.declared', at, plan, { config: [config, 'record'] })
  expectPlanNames(at, plan, config)
  const { quantised } = config
  expectArguments('plan.declared', at, plan, {
    groups: [config.groups, 'groups'],
    packed: [config.packed, 'record?'],
    stacked: [config.stacked, 'listsByName?'],
    schedules: [config.schedules, 'record?'],
    dtypes: [config.dtypes, 'texts?'],
    edges: [config.edges, 'record?'],
    library: [config.library, 'texts?'],
    tuned: [config.tuned, 'texts?'],
    byRows: [config.byRows, 'textsByName?'],
    quantised: [quantised, 'record?'],
    'quantised.weights': [quantised?.weights, 'layout?'],
  })
  for (const [node, edge] of Object.entries(config.edges ?? {}))
    if (typeof edge !== 'string') expectArguments('plan.declared', at, plan, { [`edges.${node}`]: [edge, 'record?'] })
  expectPlanParts(at, plan, config)
  const nested = (nodes: readonly string[] | readonly (readonly string[])[]): nodes is readonly (readonly string[])[] =>
    Array.isArray(nodes[0])
  return {
    name,
    graph: graph.name,
    packed: config.packed,
    stacked: stacksOf(config.stacked),
    dtypes: config.dtypes,
    schedules: config.schedules,
    quantised:
      quantised === undefined
        ? undefined
        : {
            values: quantised.values ?? [],
            dynamic: quantised.dynamic ?? [],
            weightOnly: quantised.weightOnly ?? [],
            only: quantised.only ?? [],
            across: quantised.across ?? [],
            weights: quantised.weights?.name ?? 'row',
          },
    edges: Object.entries<EdgeType | EdgeConfig | undefined>(config.edges ?? {}).flatMap(([node, edge]) =>
      edge === undefined ? [] : [{ node, ...edgeOf(edge) }],
    ),
    groups: Object.entries<readonly string[] | readonly (readonly string[])[]>(config.groups).map(([kernel, nodes]) => ({
      kernel,
      occurrences: nested(nodes) ? nodes : [nodes],
    })),
    library: config.library,
    tuned: config.tuned,
    byRows: config.byRows === undefined ? undefined : fewOf(at, config.byRows),
    layouts: layoutsOf(config),
    written: writtenAt(plan),
  }
}

/**
 * Declares a plan whose groups are found by the cost model when CUDA is generated. Packing and stacks are given, not searched:
 * `autoPlan('auto', encoderLayer, { device: 'h200' })`.
 */
export function autoPlan<const N extends string, const S extends string = never>(
  name: string,
  graph: GraphDecl<N>,
  config: AutoPlanConfig<NoInfer<N>, S>,
): PlanDecl {
  expectGraph(name, graph, autoPlan)
  expectArguments('plan.declared', `plan ${name}`, autoPlan, { config: [config, 'record'] })
  const { packed, stacked, device, dims, dtype } = config
  expectArguments('plan.declared', `plan ${name}`, autoPlan, {
    device: [device, 'text'],
    packed: [packed, 'record?'],
    stacked: [stacked, 'listsByName?'],
    dims: [dims, 'record?'],
  })
  expectAutoParts(`plan ${name}`, autoPlan, config)
  const auto = { device, dims, dtype }
  return { name, graph: graph.name, packed, stacked: stacksOf(stacked), groups: [], auto, written: writtenAt(autoPlan) }
}

const edgeOf = (edge: EdgeType | EdgeConfig): { readonly dtype?: EdgeType; readonly layout?: string } =>
  typeof edge === 'string'
    ? { dtype: edge }
    : {
        ...(edge.dtype === undefined ? {} : { dtype: edge.dtype }),
        ...(edge.layout === undefined ? {} : { layout: edge.layout.name }),
      }

function layoutsOf({ edges = {}, quantised }: Pick<PlanConfig<string, string, string>, 'edges' | 'quantised'>): NamedLayouts {
  const used = new UsedLayouts()
  used.nameOf(quantised?.weights)
  for (const edge of Object.values(edges)) if (typeof edge === 'object') used.nameOf(edge.layout)
  return used.all
}

/** @throws usage `plan.declared` for a number of rows that is none */
function fewOf(at: string, plans: Readonly<Record<string, string>>): NonNullable<PlanDecl['byRows']> {
  const few = Object.entries(plans).map(([rows, other]) => ({ most: Number(rows), plan: other }))
  const bad = Object.keys(plans).find((rows) => !/^[1-9]\d{0,8}$/.test(rows))
  if (bad === undefined) return few.sort((a, b) => a.most - b.most)
  throw usageError('plan.declared', `${at}: byRows has ${told(bad)}, which is no number of rows`, {
    hint: "expected numbers of rows with plans, such as { 1: 'one-row', 16: 'few-rows' }",
    about: { written: writtenAt(plan) },
  })
}

const stacksOf = (stacks: Readonly<Record<string, readonly string[]>> = {}): NonNullable<PlanDecl['stacked']> =>
  Object.entries(stacks).map(([name, nodes]) => ({ name, nodes }))

/**
 * Refuses a program in place of a graph. Layers of a program are applications of one graph, which is compiled once. A kernel of the last
 * node of one layer and the first of the next would belong to neither.
 */
function expectGraph(plan: string, decl: GraphDecl, callee: (...given: never[]) => unknown): void {
  expectArguments('plan.declared', 'plan', callee, { name: [plan, 'text'], graph: [decl, 'record'] })
  if (!('of' in decl)) {
    expectArguments('plan.declared', `plan ${plan}`, callee, { graph: [decl, 'graph'] })
    return
  }
  const reason = 'a plan is for a graph, and a group cannot reach from one application to the next'
  throw usageError('plan.graph', `plan ${plan}: ${decl.name} is a program: ${reason}`, {
    hint: 'to fuse across the boundary of layers, move it: let the graph begin where the group begins, and carry the values that it needs',
  })
}
