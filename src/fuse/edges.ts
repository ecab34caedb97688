/**
 * Storage types of edges: a plan may store the result of a node in another float type than the model's, a residual in float32
 * for instance. Bodies compute in float32 whatever they load, so any kernel a plan derives takes such an edge; a node that stays
 * an op of its own does not, because its signature gives all its tensors one type. Runs before nodes are grouped.
 */
import { usageError } from '../errors.js'
import { type Graph, inputsOf, outputsOf, type ValueId } from '../ir/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import { findNode } from './edit.js'

/** The graph with the plan's edge types. @throws usage `plan.node` for an unknown node, `plan.edge` naming the node that cannot take the type */
export function typeEdges(graph: Graph, plan: PlanDecl): Graph {
  const values = [...graph.values]
  for (const { node: name, dtype } of plan.edges ?? []) {
    const node = findNode(graph, plan.name, 'edges', name)
    const typed = new Set<ValueId>(outputsOf(node))
    for (const view of graph.nodes) if (view.kind === 'view' && typed.has(view.input)) typed.add(view.out)
    for (const output of Object.values(graph.outputs)) {
      if (typed.has(output)) throw refuse(plan, name, 'it is a result of the graph, whose type the model fixes')
    }
    const grouped = new Set(plan.groups.flatMap(({ occurrences }) => occurrences.flat()))
    for (const other of graph.nodes) {
      const touches = [...inputsOf(other), ...outputsOf(other)].some((id) => typed.has(id))
      if (!touches || other.kind === 'view') continue
      if (!grouped.has(other.name)) throw refuse(plan, name, `${other.name} is in no group, and stores and reads one type only`)
      if (other.kind === 'matmul' && inputsOf(other).some((id) => typed.has(id)))
        throw refuse(plan, name, `the matmul ${other.name} reads operands of one type only`)
    }
    for (const id of typed) {
      const value = values[id]
      if (value !== undefined) values[id] = { ...value, dtype }
    }
  }
  return { ...graph, values }
}

const refuse = (plan: PlanDecl, node: string, reason: string) =>
  usageError('plan.edge', `plan ${plan.name}: the edge behind ${node} cannot have a type of its own: ${reason}`, {
    hint: 'give a type to edges between groups only',
  })
