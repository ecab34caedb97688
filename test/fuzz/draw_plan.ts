/** Random plans: groups that grow from a node along the edges of a graph, and options of the whole plan. The compiler decides if they are legal. */
import { type GraphDesc, type PlanDesc, readBy, type StoredDesc } from './graph_describe.js'
import { Random } from './random.js'

/** The neighbours of a group: nodes that read it, and nodes that it reads. */
function around({ nodes }: GraphDesc, group: ReadonlySet<string>, taken: ReadonlySet<string>): string[] {
  const readers = nodes.filter((node) => readBy(node).some((name) => group.has(name)))
  const members = nodes.filter(({ name }) => group.has(name))
  const read = nodes.filter(({ name }) => members.some((member) => readBy(member).includes(name)))
  return [...readers, ...readers, ...read].map(({ name }) => name).filter((name) => !group.has(name) && !taken.has(name))
}

const isMatmul = ({ nodes }: GraphDesc, name: string): boolean =>
  nodes.some((node) => node.kind === 'matmul' && node.name === name)

function drawGroups(graph: GraphDesc, random: Random): string[][] {
  const taken = new Set<string>()
  const groups: string[][] = []
  const add = (members: readonly string[]): void => {
    if (members.length === 0) return
    groups.push([...members])
    for (const member of members) taken.add(member)
  }
  if (random.chance(0.6)) add(graph.core ?? [])
  for (const { name: start } of random.shuffle(graph.nodes)) {
    if (taken.has(start) || random.chance(0.35)) continue
    const group = new Set([start])
    while (random.chance(0.7)) {
      const next = around(graph, group, taken)
      if (next.length === 0) break
      group.add(random.pick(next))
    }
    // Views have no names for a plan: they belong to their readers.
    add(graph.nodes.flatMap((node) => (group.has(node.name) && node.kind !== 'view' ? [node.name] : [])))
  }
  return groups
}

/** Stacks of a graph: all, or the first one alone. */
function drawStacks({ stacks = [] }: GraphDesc, random: Random): Readonly<Record<string, readonly string[]>> {
  if (stacks.length === 0 || !random.chance(0.75)) return {}
  const chosen = random.chance(0.8) ? stacks : stacks.slice(0, 1)
  return Object.fromEntries(chosen.map((stack, at) => [`stack${at}`, stack]))
}

/** Groups in which a stack replaces its parts, in the first group that has one of them. */
function withStacks(groups: readonly (readonly string[])[], stacks: Readonly<Record<string, readonly string[]>>): string[][] {
  const nameOf = new Map(Object.entries(stacks).flatMap(([name, parts]) => parts.map((part) => [part, name] as const)))
  const taken = new Set<string>()
  const made = groups.map((group) => {
    const members = [...new Set(group.map((name) => nameOf.get(name) ?? name))].filter((name) => !taken.has(name))
    for (const member of members) taken.add(member)
    return members
  })
  return made.filter((group) => group.length > 0)
}

const none: StoredDesc = { edges: {}, values: [], dynamic: [], weightOnly: [] }

/** Values as int8, such as matmuls read, or results in another type. */
function drawStored(
  graph: GraphDesc,
  groups: readonly (readonly string[])[],
  stacks: Readonly<Record<string, readonly string[]>>,
  random: Random,
): StoredDesc {
  const stacked = new Set(Object.values(stacks).flat())
  const matmuls = graph.nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const isFloat = ({ dtype }: { readonly dtype: string }): boolean => dtype === 'T' || dtype === graph.main
  const floats = matmuls.filter(isFloat)
  if (floats.length > 0 && random.chance(0.3)) {
    const weights = new Set(graph.given.flatMap((each) => (each.isWeight ? [each.name] : [])))
    const read = [...new Set(floats.flatMap(({ a, b }) => [a, b]).filter((name) => !weights.has(name)))]
    const named = read.filter((name) => !graph.nodes.some((node) => node.name === name && node.kind === 'view'))
    const chosen = named.filter(() => random.chance(0.7))
    const form = random.pick(['values', 'dynamic', 'weightOnly'] as const)
    if (form === 'weightOnly') {
      const isGrouped = (name: string): boolean => groups.some((group) => group.includes(name))
      const byWeight = floats.filter(
        ({ name, a, b }) => isGrouped(name) && !stacked.has(name) && !weights.has(a) && weights.has(b),
      )
      return { ...none, weightOnly: byWeight.map(({ name }) => name).filter(() => random.chance(0.7)) }
    }
    return { ...none, [form]: chosen }
  }
  if (!random.chance(0.5)) return none
  // Between two groups, where a type is stored.
  const inner = graph.nodes.filter((node) => {
    if (node.kind === 'view' || !isFloat(node) || stacked.has(node.name) || graph.outputs.includes(node.name)) return false
    const own = groups.find((group) => group.includes(node.name))
    const readers = graph.nodes.filter((each) => readBy(each).includes(node.name))
    return own !== undefined && readers.every(({ name }) => !own.includes(name) && groups.some((group) => group.includes(name)))
  })
  const edges = inner.filter(() => random.chance(0.6)).map(({ name }) => [name, random.pick(['f32', 'f16', 'bf16'] as const)])
  return { ...none, edges: Object.fromEntries(edges) }
}

/** Puts int8 nodes into groups: a matmul's sums are dequantised in its group, and values are rounded where they are produced. */
function withSteps(graph: GraphDesc, groups: readonly (readonly string[])[], stored: StoredDesc, random: Random): string[][] {
  const rounded = new Set([...stored.values, ...stored.dynamic])
  const isRead = (name: string): boolean => graph.nodes.some((node) => node.kind === 'matmul' && readBy(node).includes(name))
  const weights = new Set(graph.given.flatMap((each) => (each.isWeight ? [each.name] : [])))
  const isKnown = (name: string): boolean => {
    const view = graph.nodes.find((node) => node.kind === 'view' && node.name === name)
    return rounded.has(name) || (view !== undefined && readBy(view).every(isKnown))
  }
  const isOfIntegers = (node: GraphDesc['nodes'][number]): boolean =>
    node.kind === 'matmul' && readBy(node).some(isKnown) && readBy(node).every((each) => weights.has(each) || isKnown(each))
  if (rounded.size === 0 && stored.weightOnly.length === 0) return groups.map((group) => [...group])
  return groups.map((group) =>
    group.flatMap((name) => {
      const isInteger = stored.weightOnly.includes(name) || graph.nodes.some((node) => node.name === name && isOfIntegers(node))
      return [
        name,
        ...(isInteger && random.chance(0.85) ? [`${name}.float`] : []),
        ...(rounded.has(name) && isRead(name) && random.chance(0.6) ? [`${name}.int8`] : []),
      ]
    }),
  )
}

/** @param name snake_case */
export function drawPlan(graph: GraphDesc, seed: number, name: string): PlanDesc {
  const random = new Random(seed)
  const stacked = drawStacks(graph, random)
  const drawn = drawGroups(graph, random)
  const stored = drawStored(graph, drawn, stacked, random)
  const groups = withSteps(graph, withStacks(drawn, stacked), stored, random)
  const library = groups.flatMap((group, at) => (group.some((each) => isMatmul(graph, each)) && random.chance(0.1) ? [at] : []))
  const isPacked = graph.isRagged === true && random.chance(0.7)
  const isStored = Object.values(stored).some((each) => Object.keys(each).length > 0)
  return {
    name,
    groups,
    library,
    ...(Object.keys(stacked).length === 0 ? {} : { stacked }),
    ...(isPacked ? { isPacked } : {}),
    ...(isStored ? { stored } : {}),
  }
}
