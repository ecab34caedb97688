/**
 * Storage of edges. A plan may store the result of a node in another float type than the model's, such as float32 for a residual, or in a layout.
 * Bodies compute in float32 regardless of the storage type, and do not depend on layouts, so every derived kernel accepts such an edge. A node that
 * remains an op of its own does not, since its signature fixes both. Runs before nodes are grouped.
 */
import { usageError } from '../../errors.js'
import { type Graph, inputsOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { printShape } from '../../ir/shape.js'
import { splitLayoutName } from '../../ir/split_layout.js'
import type { EdgeType, PlanDecl } from '../../lang/plan.js'
import { aliasesOf, findNode, type LayoutsByName, runsBetween, valueAt } from './edit.js'

/**
 * Applies the plan's edges to a graph.
 * @throws usage `plan.node` for an unknown node, `plan.edge` naming the node that cannot take the type or the layout that does not fit
 */
export function placeEdges(graph: Graph, plan: PlanDecl, layouts: LayoutsByName): Graph {
  return (plan.edges ?? []).reduce((current, { node, dtype, layout }) => {
    const typed = dtype === undefined ? current : typeEdge(current, plan, node, dtype)
    const placed = layout === undefined ? typed : layOut(typed, plan, node, layout, layouts)
    if (!(node in current.inputs)) checkStored(current, plan, node, dtype === undefined ? 'a layout' : 'a type')
    return placed
  }, graph)
}

const groupedIn = (plan: PlanDecl): ReadonlySet<string> => new Set(plan.groups.flatMap(({ occurrences }) => occurrences.flat()))

/** Refuses an edge whose readers are all in the group of its producer: its values are never stored. */
function checkStored(graph: Graph, plan: PlanDecl, name: string, what: string): void {
  const { nodes, outputs } = graph
  const group = plan.groups.find(({ occurrences }) => occurrences.some((occurrence) => occurrence.includes(name)))
  const members = group?.occurrences.find((occurrence) => occurrence.includes(name))
  if (group === undefined || members === undefined) return
  const made = outputsOf(findNode(graph, plan.name, 'edges', name)).flatMap((id) => [...aliasesOf(nodes, id)])
  const isRead = (node: Graph['nodes'][number]): boolean => node.kind !== 'view' && inputsOf(node).some((id) => made.includes(id))
  const outside = nodes.some((node) => isRead(node) && !members.includes(node.name))
  if (outside || Object.values(outputs).some((id) => made.includes(id))) return
  throw refuse(plan, name, what, `it lies inside of group ${group.kernel}, where nothing is stored`)
}

function typeEdge(graph: Graph, plan: PlanDecl, name: string, dtype: EdgeType): Graph {
  const values = [...graph.values]
  const node = findNode(graph, plan.name, 'edges', name)
  const typed = new Set<ValueId>(outputsOf(node))
  for (const view of graph.nodes) if (view.kind === 'view' && typed.has(view.input)) typed.add(view.out)
  for (const output of Object.values(graph.outputs)) {
    if (typed.has(output)) throw refuse(plan, name, 'a type', 'it is a result of the graph, whose type the model fixes')
  }
  const grouped = groupedIn(plan)
  for (const other of graph.nodes) {
    const touches = [...inputsOf(other), ...outputsOf(other)].some((id) => typed.has(id))
    if (!touches || other.kind === 'view') continue
    if (!grouped.has(other.name))
      throw refuse(plan, name, 'a type', `${other.name} is in no group, and stores and reads one type only`)
    if (other.kind === 'matmul' && inputsOf(other).some((id) => typed.has(id)))
      throw refuse(plan, name, 'a type', `the matmul ${other.name} reads operands of one type only`)
  }
  for (const id of typed) values[id] = { ...valueAt(values, id), dtype }
  return { ...graph, values }
}

/** Assigns the layout to every shape under which the edge is read: unchanged if the shape has the layout's rank, split if it is finer. */
function layOut(graph: Graph, plan: PlanDecl, name: string, layout: string, layouts: LayoutsByName): Graph {
  const known = layouts.get(layout)
  if (known === undefined) {
    throw usageError('plan.edge', `plan ${plan.name}: the edge after ${name} has the unknown layout ${layout}`, {
      hint: `declared: ${[...layouts.keys()].join(', ')}`,
      about: { path: [name], nodes: [name] },
    })
  }
  const stored = graph.inputs[name] ?? outputsOf(findNode(graph, plan.name, 'edges', name))[0] ?? -1
  const aliases = [...aliasesOf(graph.nodes, stored)]
  const shapes = new Map(
    aliases
      .map((id) => valueAt(graph.values, id).shape)
      .flatMap((shape) => (shape.length === known.axes.length ? [[printShape(shape), shape]] : [])),
  )
  const [own, other] = [...shapes.values()]
  if (own === undefined || other !== undefined) {
    const seen = aliases.map((id) => `"${printShape(valueAt(graph.values, id).shape)}"`).join(', ')
    throw refuse(plan, name, `layout ${layout}`, `it has axes ${known.axes.join(' ')}, and the edge is seen as ${seen}`)
  }
  const grouped = groupedIn(plan)
  const touched = graph.nodes.filter(
    (node) => node.kind === 'op' && [...inputsOf(node), ...outputsOf(node)].some((id) => aliases.includes(id)),
  )
  const alone = touched.find((node) => !grouped.has(node.name))
  if (alone !== undefined)
    throw refuse(plan, name, `layout ${layout}`, `${alone.name} is in no group, and stores and reads one layout only`)
  const values = [...graph.values]
  for (const id of aliases) {
    const value = valueAt(values, id)
    const runs = runsBetween(own, value.shape)
    values[id] = { ...value, layout: runs === undefined ? layout : splitLayoutName(layout, runs) }
  }
  return { ...graph, values }
}

const refuse = (plan: PlanDecl, node: string, what: string, reason: string) =>
  usageError('plan.edge', `plan ${plan.name}: the edge after ${node} cannot have ${what} of its own: ${reason}`, {
    hint: 'give types and layouts to edges between groups only',
    about: { path: [node], nodes: [node] },
  })
