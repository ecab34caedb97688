/**
 * Parts of a group around its matmuls: members that compute a factor, and members that read the matmuls. Each part is derived from a graph in
 * which only its own results are needed.
 */
import { type Graph, inputsOf, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { isUsed } from '../space/members.js'
import { illegal, type Member } from '../space/space.js'

type Matmul = NodeOf<'matmul'>

/** True if no matmul of a group depends on another. */
export function areParallel(graph: Graph, matmuls: readonly Matmul[]): boolean {
  return matmuls.every((matmul) => {
    const reached = reachedFrom(graph, [matmul.out])
    return matmuls.every(({ a, b }) => !reached.has(a) && !reached.has(b))
  })
}

/** Values computed from given ones, by any nodes, and the given ones. */
function reachedFrom(graph: Graph, from: readonly ValueId[]): ReadonlySet<ValueId> {
  const reached = new Set(from)
  for (const node of graph.nodes) {
    if (inputsOf(node).some((id) => reached.has(id))) for (const id of outputsOf(node)) reached.add(id)
  }
  return reached
}

/** Members that compute a value, directly or through others, in the order of the graph. */
export function makersOf(graph: Graph, members: readonly Member[], id: ValueId): readonly Member[] {
  const wanted = new Set([id])
  const found: Member[] = []
  for (const node of [...graph.nodes].reverse()) {
    if (!outputsOf(node).some((out) => wanted.has(out))) continue
    const member = members.find((candidate) => candidate.node === node)
    if (member === undefined && node.kind !== 'view') continue
    if (member !== undefined) found.unshift(member)
    for (const input of inputsOf(node)) wanted.add(input)
  }
  return found
}

/** Nodes that read values, directly or through views. */
function readersOf({ nodes }: Graph, values: readonly ValueId[]): readonly Graph['nodes'][number][] {
  const seen = new Set(values)
  return nodes.filter((node) => {
    if (!inputsOf(node).some((id) => seen.has(id))) return false
    if (node.kind === 'view') seen.add(node.out)
    return node.kind !== 'view'
  })
}

export interface Parts {
  /** Members after the matmuls, and other members that these read. */
  readonly after: readonly Member[]
  /** Members that compute a factor, by the factor's value. */
  readonly makers: ReadonlyMap<ValueId, readonly Member[]>
}

/**
 * Divides the members of a group of matmuls into parts.
 * @throws usage `plan.illegal` for a member that computes a factor and is needed outside of the group, where nothing stores it
 */
export function partsOf(graph: Graph, group: string, matmuls: readonly Matmul[], members: readonly Member[]): Parts {
  const makers = new Map(matmuls.flatMap(({ a, b }) => [a, b]).map((id) => [id, makersOf(graph, members, id)] as const))
  const before = new Set([...makers.values()].flat())
  const inside = new Set<Graph['nodes'][number]>([...members.map(({ node }) => node), ...matmuls])
  const [first] = matmuls
  for (const { node } of before) {
    if (!outputsOf(node).some((id) => isUsed(graph, id, inside))) continue
    const readers = readersOf(graph, outputsOf(node)).filter((reader) => !inside.has(reader))
    const names = readers.map(({ name }) => name)
    const isResult = names.length === 0
    throw illegal(
      group,
      node.name,
      first?.name ?? '',
      `${node.name} is needed outside of the group, ${isResult ? 'as a result of the graph' : `by ${names.join(', ')}`}, and rows that are computed while a matmul loads them are never stored`,
      isResult
        ? `leave ${node.name} out of the group`
        : `take ${names.join(', ')} into the group too, or leave ${node.name} out of it`,
    )
  }
  const wanted = new Set(members.filter((member) => !before.has(member)))
  // Members that compute a factor may also be read after the matmuls, where they are recomputed.
  for (const member of [...wanted]) {
    for (const id of inputsOf(member.node)) for (const maker of makersOf(graph, members, id)) wanted.add(maker)
  }
  return { after: members.filter((member) => wanted.has(member)), makers }
}

/** The graph with its views and the nodes that satisfy `holds`: values that these read count as needed outside of a group. */
export const onlyNodes = (graph: Graph, holds: (node: Graph['nodes'][number]) => boolean): Graph => ({
  ...graph,
  nodes: graph.nodes.filter((node) => node.kind === 'view' || holds(node)),
})
