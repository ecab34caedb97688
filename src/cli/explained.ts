/** What plans make of a graph and what that costs, for the verbs that price: written plans as they are, automatic ones with the groups of a search. */

import { type Pricing, priceDims } from '../fuse/search/cost.js'
import { explainPlan, type PlanReport } from '../fuse/search/explain.js'
import { resolvePlans } from '../fuse/search/resolve.js'
import type { Graph } from '../ir/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import type { Read, SearchPath } from './search_path.js'

/** The plan that leaves a graph as it is declared, which nobody has to write. */
export const bare = 'unfused'

/** @param dims what differs from the sizes that the graph is usually run with */
export type Explain = (plan: string, pricing: Pricing) => PlanReport

/**
 * Explains plans of a graph by their names. One that says nothing of the graph leaves it as it is.
 * @param names the plans that will be asked for: a search takes seconds, and is left out where none of them needs it
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
  // A search needs the written plans beside it; written plans need no search.
  const resolved: readonly PlanDecl[] = isSearched ? locating(() => resolvePlans(ofGraph, graphs, ops, layouts)) : ofGraph
  return (name, { device, dims, dtype }) => {
    const plan = resolved.find((each) => each.name === name) ?? { name, graph: graph.name, groups: [] }
    return locating(() => explainPlan(graph, plan, ops, { device, dims: priceDims(graph, plan.packed, dims), dtype }, layouts))
  }
}
