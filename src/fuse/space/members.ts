/** A group of op nodes and its surroundings: the views between its members, and which of its values others need. */
import { type Graph, type GraphNode, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import type { LayoutsByName } from '../graph/edit.js'
import { type Derived, deriveKernel } from '../rows/derive.js'
import type { Member } from './space.js'

/** The row program of a group of ops. @throws usage `plan.illegal` naming the two nodes that conflict and why */
export const deriveMembers = (graph: Graph, name: string, members: readonly Member[], layouts: LayoutsByName): Derived =>
  deriveKernel(graph, name, members, innerViews(graph, members), neededOutside(graph, members), layouts)

/**
 * Views between members, of several one behind another the last as one of the first's input. Views by which members see values that are
 * not row-major count too: the layout is for the shape on the other side.
 */
export function innerViews(graph: Graph, members: readonly Member[]): NodeOf<'view'>[] {
  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  const read = new Set(members.flatMap(({ node }) => Object.values(node.inputs)))
  const laidOut = (id: ValueId): boolean => graph.values[id]?.layout !== 'row'
  const origins = new Map([...made].map((id) => [id, id] as const))
  const found: NodeOf<'view'>[] = []
  for (const view of graph.nodes) {
    if (view.kind !== 'view') continue
    const { input, out } = view
    const origin = origins.get(input)
    if (origin !== undefined) origins.set(out, origin)
    if (read.has(out) && origin !== undefined) found.push({ ...view, input: origin })
    else if (laidOut(input) && (made.has(input) || read.has(out))) found.push(view)
  }
  return found
}

/** Values of the group that other nodes or the graph's outputs read, directly or through a view. */
function neededOutside(graph: Graph, members: readonly Member[]): Set<ValueId> {
  const inside = new Set<GraphNode>(members.map(({ node }) => node))
  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  return new Set([...made].filter((value) => isUsed(graph, value, inside)))
}

/** Whether a node outside of `inside`, or the graph's user, reads a value, directly or through a view. */
export function isUsed(graph: Graph, value: ValueId, inside: ReadonlySet<GraphNode>): boolean {
  const usedBy = (id: ValueId): boolean =>
    Object.values(graph.outputs).includes(id) ||
    graph.nodes.some((node) => !inside.has(node) && inputsOf(node).includes(id) && (node.kind !== 'view' || usedBy(node.out)))
  return usedBy(value)
}
