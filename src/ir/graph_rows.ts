/** Planned graphs by numbers of rows: the choice of one for a binding of dimensions, and all of its nodes. */
import type { Graph, GraphNode } from './graph.js'
import { evaluateExtent } from './shape.js'

/** The graph that runs at these extents of its dimensions. @throws usage `graph.dim` if a dimension has no value */
export function graphAt(graph: Graph, dims: Readonly<Record<string, number>>): Graph {
  if (graph.byRows === undefined) return graph
  const { rows, few } = graph.byRows
  const count = evaluateExtent(rows, dims)
  return few.find(({ most }) => count <= most)?.graph ?? graph
}

/** A graph's nodes at any number of rows. */
export const nodesAtAnyRows = ({ nodes, byRows }: Graph): readonly GraphNode[] => [
  ...nodes,
  ...(byRows?.few ?? []).flatMap(({ graph }) => graph.nodes),
]
