/** Graphs under plans, with predicted costs. Written plans are used as they are; automatic ones get their groups from a search. */

import { type Pricing, priceDims } from '../cost/step.js'
import { applyPlan } from '../fuse/apply.js'
import type { Graph } from '../ir/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import { planAt } from '../search/by_rows.js'
import { explainPlan, type PlanReport } from '../search/explain.js'
import { resolvePlans } from '../search/resolve.js'
import type { Read, SearchPath } from './search_path.js'

/** Implicit plan that leaves a graph as declared. */
export const bare = 'unfused'

/** @param dims dimensions that differ from the default sizes of the graph */
export type Explain = (plan: string, pricing: Pricing) => PlanReport

/**
 * Explains plans of a graph by name. A plan without groups for the graph leaves it unchanged.
 * @param names plans that will be requested: a search takes seconds, and is skipped if none of them needs it
 * @throws usage `plan.*` for a plan that cannot be applied; `cost.device`, `graph.dim`
 */
export function explainer(
  { graphs, plans, locating }: SearchPath,
  graph: Graph,
  { ops, layouts }: Read,
  names: readonly string[],
): Explain {
  const ofGraph = plans.filter((plan) => plan.graph === graph.name)
  const isSearched = ofGraph.some(({ name, auto }) => auto !== undefined && names.includes(name))
  // A search also needs the written plans; written plans need no search.
  const resolved: readonly PlanDecl[] = isSearched ? locating(() => resolvePlans(ofGraph, graphs, ops, layouts)) : ofGraph
  const applied = (plan: PlanDecl) => () => applyPlan(graph, plan, ops, layouts).graph
  return (name, { dims, ...pricing }) => {
    const plan = resolved.find((each) => each.name === name) ?? { name, graph: graph.name, groups: [] }
    const sizes = priceDims(graph, plan.packed, dims)
    return locating(() => {
      const instead = planAt(plan, resolved, applied(plan), sizes)
      const report = explainPlan(graph, instead ?? plan, ops, { ...pricing, dims: sizes }, layouts)
      return instead === undefined ? report : { ...report, plan: name, instead: instead.name }
    })
  }
}
