/** The nodes of a group as a graph of their own, so that the group can be checked and timed without the rest of its graph. */
import { type Graph, type GraphNode, inputsOf, outputsOf, type ValueId } from '../ir/graph.js'

export interface Part {
  readonly graph: Graph
  /** Names of inputs that are results of other nodes of the whole graph. */
  readonly inner: ReadonlySet<string>
}

/** @param names of nodes that are no views */
export function partOf(whole: Graph, names: readonly string[]): Part {
  const nodes = withViews(whole, names)
  const made = new Set(nodes.flatMap(outputsOf))
  const read = [...new Set(nodes.flatMap(inputsOf))].filter((id) => !made.has(id))
  const given = (ids: Graph['inputs']): Graph['inputs'] =>
    Object.fromEntries(Object.entries(ids).filter(([, id]) => read.includes(id)))
  const [inputs, weights] = [given(whole.inputs), given(whole.weights)]
  const known = new Set([...Object.values(inputs), ...Object.values(weights)])
  const others = read.filter((id) => !known.has(id)).map((id) => [`value${id}`, id] as const)
  const inside = new Set<GraphNode>(nodes)
  const needed = new Set([
    ...Object.values(whole.outputs),
    ...whole.nodes.flatMap((node) => (inside.has(node) ? [] : inputsOf(node))),
  ])
  const outputs = [...made].filter((id) => needed.has(id)).map((id) => [`value${id}`, id] as const)
  const { attrs, typical, packing, values } = whole
  const taken = new Set(nodes.flatMap(attrsOf))
  return {
    graph: {
      ...{ name: whole.name, values, nodes, weights, typical },
      inputs: { ...inputs, ...Object.fromEntries(others) },
      outputs: Object.fromEntries(outputs),
      attrs: attrs.filter((name) => taken.has(name)),
      ...(packing === undefined ? {} : { packing: presentIn(packing, read) }),
    },
    inner: new Set(others.map(([name]) => name)),
  }
}

/** The rows of a packed graph, by those of their inputs that a part reads. */
function presentIn(packing: NonNullable<Graph['packing']>, read: readonly ValueId[]): NonNullable<Graph['packing']> {
  const { batch, seq, tokens, ...inputs } = packing
  const present = Object.entries(inputs).filter(([, id]) => id !== undefined && read.includes(id))
  return { batch, seq, tokens, ...Object.fromEntries(present) }
}

/** The named nodes and the views around them: those they read, back to values that other nodes compute, and those of their results. */
function withViews({ nodes }: Graph, names: readonly string[]): readonly GraphNode[] {
  const chosen = new Set(nodes.filter(({ name, kind }) => kind !== 'view' && names.includes(name)))
  const after = new Set([...chosen].flatMap(outputsOf))
  const before = new Set([...chosen].flatMap(inputsOf))
  for (const node of nodes) if (node.kind === 'view' && after.has(node.input)) after.add(node.out)
  for (const node of nodes.toReversed()) if (node.kind === 'view' && before.has(node.out)) before.add(node.input)
  return nodes.filter((node) => (node.kind === 'view' ? before.has(node.out) || after.has(node.input) : chosen.has(node)))
}

/** Attributes of the graph that a node takes. */
const attrsOf = (node: GraphNode): readonly string[] =>
  node.kind === 'op'
    ? Object.values(node.attrs).flatMap((value) => (typeof value === 'object' && 'attr' in value ? [value.attr] : []))
    : []
