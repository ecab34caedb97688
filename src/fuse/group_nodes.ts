/**
 * Rules for the nodes of a group in their graph: no path leaves and re-enters the group, and its results are used. Checked before the group is
 * derived.
 */
import { usageError } from '../errors.js'
import { type Graph, type GraphNode, inputsOf, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import { illegal } from './space/space.js'

type GroupNode = NodeOf<'op'> | NodeOf<'matmul'>

/** Refuses a path that leaves and re-enters the group: the fused node would depend on itself. */
export function checkConvex(graph: Graph, group: string, members: readonly GroupNode[]): void {
  const inside = new Set<GraphNode>(members)
  // Per value: the member that computed it, and the member whose result has since passed a node outside.
  type Origins = Map<ValueId, string | undefined>
  const made: Origins = new Map()
  const left: Origins = new Map()
  const first = (node: GraphNode, of: Origins): string | undefined =>
    inputsOf(node)
      .map((id) => of.get(id))
      .find((name) => name !== undefined)
  for (const node of graph.nodes) {
    const gone = first(node, left)
    const own = first(node, made)
    if (inside.has(node) && gone !== undefined) {
      const between = nodesBetween(graph, inside, gone, node)
      const [is, them] = between.length === 1 ? ['is', 'it'] : ['are', 'them']
      throw illegal(
        group,
        gone,
        node.name,
        `${listed(between)} ${is} between them, and would have to run inside the kernel`,
        `add ${them} to the group: ${between.map((name) => `'${name}'`).join(', ')}; or leave one of the two nodes out`,
      )
    }
    for (const id of outputsOf(node)) {
      if (inside.has(node)) made.set(id, node.name)
      else if (node.kind === 'view') {
        made.set(id, own)
        left.set(id, gone)
      } else left.set(id, gone ?? own)
    }
  }
}

/** Nodes outside of a group on paths from one of its members to another. */
function nodesBetween({ nodes }: Graph, inside: ReadonlySet<GraphNode>, from: string, to: GraphNode): readonly string[] {
  const reached = new Set(nodes.flatMap((node) => (node.name === from && inside.has(node) ? outputsOf(node) : [])))
  const after = nodes.filter((node) => {
    if (!inputsOf(node).some((id) => reached.has(id))) return false
    for (const id of outputsOf(node)) reached.add(id)
    return true
  })
  const wanted = new Set(inputsOf(to))
  const found = [...after].reverse().filter((node) => {
    if (!outputsOf(node).some((id) => wanted.has(id))) return false
    for (const id of inputsOf(node)) wanted.add(id)
    return true
  })
  return found.reverse().flatMap((node) => (node.kind === 'view' || inside.has(node) ? [] : [node.name]))
}

/** Names in a sentence. */
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** @throws usage `plan.unread` for a group whose results are unused */
export function checkRead({ nodes, outputs }: Graph, group: string, members: readonly GroupNode[]): void {
  const inside = new Set<GraphNode>(members)
  const read = new Set([...Object.values(outputs), ...nodes.flatMap((node) => (inside.has(node) ? [] : inputsOf(node)))])
  if (members.some((node) => outputsOf(node).some((id) => read.has(id)))) return
  const names = members.map(({ name }) => name).join(', ')
  throw usageError('plan.unread', `group ${group}: nothing reads the results of nodes ${names}`, {
    hint: 'return it among the outputs of the graph, or leave the nodes out of both',
  })
}
