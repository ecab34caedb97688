/** A group of op nodes and its surroundings: the views between its members, and its values that others need. */
import { type Graph, type GraphNode, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import type { Shape } from '../../ir/shape.js'
import type { LayoutsByName } from '../graph/edit.js'
import { beside, joinedAxis } from '../rows/beside.js'
import { type Derived, deriveKernel } from '../rows/derive.js'
import { type Member, spaceOf } from './space.js'

/**
 * The row program of a group of ops. Independent ops are fused horizontally if one of their axes differs in extent.
 * @throws usage `plan.illegal` naming the two nodes that conflict and why
 */
export function deriveMembers(graph: Graph, name: string, members: readonly Member[], layouts: LayoutsByName): Derived {
  const derive = (part: readonly Member[]): Derived =>
    deriveKernel(graph, name, part, innerViews(graph, part), neededOutside(graph, part), layouts)
  const parts = partsOf(graph, members)
  const at = parts.length < 2 ? undefined : joinedAxis(parts.map((part) => iterationOf(graph, name, part)))
  return at === undefined
    ? derive(members)
    : beside(
        name,
        parts.map((part) => ({ members: part, derived: derive(part) })),
        at,
      )
}

/** Extents that a part of a group runs over, rows first. */
function iterationOf(graph: Graph, name: string, part: readonly Member[]): Shape {
  const { axes, rows, inner } = spaceOf(graph, name, part, innerViews(graph, part))
  return [...rows, inner].map((atom) => axes.extent(atom))
}

/** Parts of members that compute something for each other, directly or through views. */
function partsOf(graph: Graph, members: readonly Member[]): readonly (readonly Member[])[] {
  const views = innerViews(graph, members)
  const sources = new Map(views.map(({ input, out }) => [out, input]))
  const parts: Member[][] = []
  for (const member of members) {
    const read = new Set(Object.values(member.node.inputs).flatMap((id) => [id, sources.get(id) ?? id]))
    const feeding = parts.filter((part) => part.some(({ node }) => Object.values(node.outputs).some((id) => read.has(id))))
    const others = parts.filter((part) => !feeding.includes(part))
    parts.splice(0, parts.length, ...others, [...feeding.flat(), member])
  }
  return parts
}

/**
 * Views between members; of a chain of views, the last one with the first one's input. Views by which members see values that are not row-major
 * count too: the layout belongs to the shape on the other side.
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

/** True if a node outside of `inside`, or the graph's caller, reads a value, directly or through a view. */
export function isUsed(graph: Graph, value: ValueId, inside: ReadonlySet<GraphNode>): boolean {
  const usedBy = (id: ValueId): boolean =>
    Object.values(graph.outputs).includes(id) ||
    graph.nodes.some((node) => !inside.has(node) && inputsOf(node).includes(id) && (node.kind !== 'view' || usedBy(node.out)))
  return usedBy(value)
}
