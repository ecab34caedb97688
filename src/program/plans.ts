/**
 * Plans by name: `unfused`, and those the manifest holds the planned graphs of. To a model a plan is a rewriting of its graphs: the same inputs, weights and outputs, computed by other
 * nodes. Programs are built from what it returns.
 */

import type { PlannedGraphs } from '../emit/graphs.js'
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'

export interface ModelPlan {
  readonly name: string
  /** The graph as this plan runs it. Graphs the plan has nothing to say about come back unchanged. */
  readonly rewrite: (graph: Graph) => Graph
  /** True if the plan says anything about the graph of a name. */
  readonly covers: (graph: string) => boolean
}

/** One kernel a primitive: the baseline and the reference. */
const unfused: ModelPlan = {
  name: 'unfused',
  rewrite: (graph) => graph,
  covers: () => true,
}

export const defaultPlan = 'unfused'

/** Names of the plans there are. */
export const planNames = (planned: PlannedGraphs = {}): readonly string[] => [unfused.name, ...Object.keys(planned)]

/** @throws usage `plan.unknown` naming the plans there are */
export function findPlan(name: string, planned: PlannedGraphs = {}): ModelPlan {
  if (name === unfused.name) return unfused
  const graphs = Object.hasOwn(planned, name) ? planned[name] : undefined
  if (graphs === undefined) {
    throw usageError('plan.unknown', `unknown plan ${name}`, { hint: `known: ${planNames(planned).join(', ')}` })
  }
  return { name, rewrite: (graph) => graphs[graph.name] ?? graph, covers: (graph) => Object.hasOwn(graphs, graph) }
}
