/** Random plans: groups that grow from a node along the edges of a graph. Whether they are legal is the compiler's to say. */
import { type GraphDesc, type PlanDesc, readBy } from './graph_describe.js'
import { Random } from './random.js'

/** The nodes beside a group: those that read it, and those that it reads. */
function around({ nodes }: GraphDesc, group: ReadonlySet<string>, taken: ReadonlySet<string>): string[] {
  const readers = nodes.filter((node) => readBy(node).some((name) => group.has(name)))
  const members = nodes.filter(({ name }) => group.has(name))
  const read = nodes.filter(({ name }) => members.some((member) => readBy(member).includes(name)))
  return [...readers, ...readers, ...read].map(({ name }) => name).filter((name) => !group.has(name) && !taken.has(name))
}

/** Of attention, the nodes between and including its two matmuls. */
function core({ nodes }: GraphDesc): string[] {
  const at = nodes.flatMap((node, i) => (node.kind === 'matmul' ? [i] : []))
  return nodes.slice(at[0] ?? 0, (at[1] ?? 0) + 1).flatMap((node) => (node.kind === 'view' ? [] : [node.name]))
}

export function drawPlan(graph: GraphDesc, seed: number, name: string): PlanDesc {
  const random = new Random(seed)
  const taken = new Set<string>()
  const groups: string[][] = []
  if (graph.family === 'attention' && random.chance(0.6)) {
    groups.push(core(graph))
    for (const member of groups[0] ?? []) taken.add(member)
  }
  for (const { name: start } of random.shuffle(graph.nodes)) {
    if (taken.has(start) || random.chance(0.35)) continue
    const group = new Set([start])
    while (random.chance(0.7)) {
      const next = around(graph, group, taken)
      if (next.length === 0) break
      group.add(random.pick(next))
    }
    // Views have no names for a plan: they go with what reads them.
    const members = graph.nodes.flatMap((node) => (group.has(node.name) && node.kind !== 'view' ? [node.name] : []))
    if (members.length === 0) continue
    groups.push(members)
    for (const member of members) taken.add(member)
  }
  const holdsMatmul = (group: readonly string[]): boolean =>
    graph.nodes.some((node) => node.kind === 'matmul' && group.includes(node.name))
  const library = groups.flatMap((group, at) => (holdsMatmul(group) && random.chance(0.1) ? [at] : []))
  return { name, groups, library }
}
