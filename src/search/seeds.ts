/**
 * Groups for attention: two matmuls with the ops between them, including a softmax, and the nodes around them that only move elements. Merging
 * pairs of nodes never gets there, since no part of such a group is a kernel, so the search tries it whole.
 */
import type { Kernel } from '../ir/kernel.js'
import type { ActiveNode, Candidates } from './candidates.js'

/** Groups around each pair of matmuls, the widest first; the caller leaves out those that cannot be derived. */
export function attentionSeeds(candidates: Candidates): readonly (readonly string[])[] {
  return candidates.nodes.flatMap((context) => {
    if (!isBatched(context)) return []
    const read = candidates.nodes.filter((node) => node.kind === 'op' && candidates.feeds(node, context))
    return read.map((node) => chainBefore(candidates, node)).flatMap((chain) => around(candidates, chain, context))
  })
}

/** True for a batched matmul, such as those of attention: one matmul for each element of an axis. A layer's weights have no such axis. */
const isBatched = (node: ActiveNode): boolean =>
  node.kind === 'matmul' &&
  node.subscripts.out.some((axis) => node.subscripts.a.includes(axis) && node.subscripts.b.includes(axis))

function around(candidates: Candidates, chain: readonly ActiveNode[], context: ActiveNode): string[][] {
  const [scores] = chain
  if (scores === undefined || !isBatched(scores)) return []
  const core = [...chain, context]
  const before = shells(candidates, core, (inner, outer) => candidates.feeds(outer, inner))
  const after = shells(candidates, core, (inner, outer) => candidates.feeds(inner, outer))
  return before.flatMap((movers) => after.map((results) => [...movers, ...core, ...results].map(({ name }) => name)))
}

/** An op with the ops it reads, back to the matmul they work on, which comes first. */
function chainBefore(candidates: Candidates, node: ActiveNode): ActiveNode[] {
  const chain: ActiveNode[] = [node]
  for (let at: ActiveNode | undefined = node; at !== undefined && at.kind === 'op'; ) {
    const reader: ActiveNode = at
    at = candidates.nodes.find((made) => candidates.feeds(made, reader))
    if (at !== undefined) chain.unshift(at)
  }
  return chain
}

/** Nodes within 0, 1, 2, ... steps of a group that only move elements: sets of them, the largest first. */
function shells(
  candidates: Candidates,
  core: readonly ActiveNode[],
  touches: (inner: ActiveNode, outer: ActiveNode) => boolean,
): (readonly ActiveNode[])[] {
  const found: (readonly ActiveNode[])[] = [[]]
  for (let edge = core; ; ) {
    const taken = [...core, ...(found[0] ?? [])]
    const next = candidates.nodes.filter(
      (node) => !taken.includes(node) && moves(candidates.ops, node) && edge.some((inner) => touches(inner, node)),
    )
    if (next.length === 0) return found
    found.unshift([...(found[0] ?? []), ...next])
    edge = next
  }
}

/** True if a node stores elements of its input unchanged, or a constant under a condition. */
function moves(ops: ReadonlyMap<string, Kernel>, node: ActiveNode): boolean {
  const body = node.kind === 'op' ? (ops.get(node.op)?.body ?? []) : []
  const [stmt] = body
  if (body.length !== 1 || (stmt?.kind !== 'store' && stmt?.kind !== 'storeRow')) return false
  const { value } = stmt
  const stored = value.kind === 'call' && value.fn === 'select' ? value.args[1] : value
  return stored?.kind === 'load'
}
