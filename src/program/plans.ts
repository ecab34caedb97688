/**
 * Plans by name: `unfused`, and those whose planned graphs are in the manifest. A plan rewrites the graphs of a model into equivalent ones. A
 * rewritten graph may take further inputs that locate packed rows, take or return values as int8, and read stacked or quantised weights: compiling a
 * program reconciles these differences.
 */

import type { PlannedGraphs } from '../emit/manifest/graphs.js'
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'

export interface ModelPlan {
  readonly name: string
  /** Rewrites a graph by the plan. Returns graphs that the plan does not cover unchanged. */
  readonly rewrite: (graph: Graph) => Graph
  /** True if the plan covers the graph with this name. */
  readonly covers: (graph: string) => boolean
}

/** One kernel per primitive: the baseline and the reference. */
const unfused: ModelPlan = {
  name: 'unfused',
  rewrite: (graph) => graph,
  covers: () => true,
}

export const defaultPlan = 'unfused'

/** Names of the available plans. */
export const planNames = (planned: PlannedGraphs = {}): readonly string[] => [unfused.name, ...Object.keys(planned)]

/** @throws usage `plan.unknown` naming the available plans */
export function findPlan(name: string, planned: PlannedGraphs = {}): ModelPlan {
  if (name === unfused.name) return unfused
  const graphs = Object.hasOwn(planned, name) ? planned[name] : undefined
  if (graphs === undefined) {
    throw usageError('plan.unknown', `unknown plan ${name}`, { hint: `known: ${planNames(planned).join(', ')}` })
  }
  return { name, rewrite: (graph) => graphs[graph.name] ?? graph, covers: (graph) => Object.hasOwn(graphs, graph) }
}
