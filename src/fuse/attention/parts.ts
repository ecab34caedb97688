/** Members that feed the two matmuls of attention, members that follow them, and guards of padding. */
import { constant, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { type Graph, type GraphNode, inputsOf, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { rewrite } from '../../ir/walk.js'
import { isUsed } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'

/** Members of a group that precede or follow a value in its graph. */
export class Surroundings {
  readonly #graph: Graph
  readonly #members: readonly Member[]

  constructor(graph: Graph, members: readonly Member[]) {
    this.#graph = graph
    this.#members = members
  }

  /** The value that a chain of views starts from. */
  through(id: ValueId): ValueId {
    const view = this.#graph.nodes.find((node) => node.kind === 'view' && node.out === id)
    return view?.kind === 'view' ? this.through(view.input) : id
  }

  /** Members that use a value, directly or through others, up to the first for which `stop` holds. */
  after(id: ValueId, stop: (member: Member) => boolean = () => false): Member[] {
    const reached = new Set<ValueId>([id])
    const found: Member[] = []
    for (const node of this.#graph.nodes) {
      if (!inputsOf(node).some((input) => reached.has(input))) continue
      const member = this.#members.find((candidate) => candidate.node === node)
      if (node.kind !== 'view' && (member === undefined || stop(member))) continue
      if (member !== undefined) found.push(member)
      for (const out of outputsOf(node)) reached.add(out)
    }
    return found
  }

  /** True if a node other than the members and `nodes`, or the graph's caller, reads a value. */
  isNeeded(id: ValueId, nodes: readonly GraphNode[]): boolean {
    return isUsed(this.#graph, id, new Set([...nodes, ...this.#members.map(({ node }) => node)]))
  }

  /** Members that compute values, directly or through others. */
  before(...ids: readonly ValueId[]): Member[] {
    const wanted = new Set<ValueId>(ids)
    const found: Member[] = []
    for (const node of [...this.#graph.nodes].reverse()) {
      if (!outputsOf(node).some((out) => wanted.has(out))) continue
      const member = this.#members.find((candidate) => candidate.node === node)
      if (node.kind !== 'view' && member === undefined) continue
      if (member !== undefined) found.unshift(member)
      for (const input of inputsOf(node)) wanted.add(input)
    }
    return found
  }
}

/** Refuses attention with an inner value, other than its `results`, that is used outside the group. */
export function checkInner(graph: Graph, group: string, nodes: readonly GraphNode[], results: readonly ValueId[]): void {
  const inside = new Set(nodes)
  const last = nodes.find((node) => outputsOf(node).some((id) => id === results[0]))?.name ?? ''
  for (const node of nodes) {
    const needed = outputsOf(node).find((id) => !results.includes(id) && isUsed(graph, id, inside))
    if (needed === undefined) continue
    const outputs = node.kind === 'op' ? Object.entries(node.outputs) : []
    const output = outputs.length > 1 ? outputs.find(([, id]) => id === needed)?.[0] : undefined
    const what = output === undefined ? node.name : `${output} of ${node.name}`
    throw illegal(group, node.name, last, `${what} is needed outside, but attention keeps it on chip`)
  }
}

/** Refuses members that are not part of attention. */
export function checkClaimed(
  group: string,
  scores: NodeOf<'matmul'>,
  members: readonly Member[],
  claimed: readonly Member[],
): void {
  const left = members.find((member) => !claimed.includes(member))
  if (left !== undefined)
    throw illegal(group, left.node.name, scores.name, 'it is neither before, between nor after the two matmuls')
}

/** Strips `position < limit ? x : 0`, and every inner `select` with the same condition. */
export function unguard(expr: Expr, position: string): { readonly row: Expr; readonly limit: Expr | undefined } {
  const [condition, kept, other] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  const [at, limit] = condition?.kind === 'call' && condition.fn === 'lt' ? condition.args : []
  if (condition === undefined || kept === undefined || limit === undefined || !equalExprs(at, index(position)))
    return { row: expr, limit: undefined }
  if (!equalExprs(other, constant('f32', 0))) return { row: expr, limit: undefined }
  const row = rewrite(kept, (node) =>
    node.kind === 'call' && node.fn === 'select' && equalExprs(node.args[0], condition) ? (node.args[1] ?? node) : node,
  )
  return { row, limit }
}
