/** Runs graphs on the host through the IR evaluator, in double precision: how fused graphs are compared with unfused ones. */

import { runNodes } from '../../src/fuse/check/compose.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { Graph, ValueId } from '../../src/ir/graph.js'

export { shapeOf } from '../../src/fuse/check/compose.js'

type Numbers = Readonly<Record<string, number>>

/** Values of the graph's outputs for the given inputs and weights (by name). Layouts play no part: tensors are logical. */
export function runGraph(
  graph: Graph,
  kernels: ReadonlyMap<string, PlannedKernel>,
  given: Readonly<Record<string, ArrayLike<number>>>,
  dims: Numbers,
  attrs: Numbers,
  weights = given,
): Record<string, ArrayLike<number>> {
  const data = runValues(graph, kernels, given, dims, attrs, weights)
  return Object.fromEntries(Object.entries(graph.outputs).map(([name, id]) => [name, data.get(id) ?? []]))
}

/** All values of the graph, as `runGraph` takes its arguments. */
export function runValues(
  graph: Graph,
  kernels: ReadonlyMap<string, PlannedKernel>,
  given: Readonly<Record<string, ArrayLike<number>>>,
  dims: Numbers,
  attrs: Numbers,
  weights = given,
): ReadonlyMap<ValueId, ArrayLike<number>> {
  const values = new Map<ValueId, ArrayLike<number>>()
  for (const [name, id] of Object.entries(graph.inputs)) values.set(id, given[name] ?? [])
  for (const [name, id] of Object.entries(graph.weights)) values.set(id, weights[name] ?? [])
  return runNodes(graph, graph.nodes, { values, dims, attrs, kernels })
}
