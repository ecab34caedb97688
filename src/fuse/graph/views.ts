/** Views of views: passes that put a view in front of others leave chains, of which only the first value and the last shape matter. */
import type { Graph, GraphNode, NodeOf, ValueId } from '../../ir/graph.js'
import { printShape } from '../../ir/shape.js'
import { mapInputs, prune, valueAt } from './edit.js'

/** The graph in which no view shows what another view shows, and none has the shape of what it shows. */
export function joinViews(graph: Graph): Graph {
  const views = new Map(
    graph.nodes.flatMap((node): [ValueId, NodeOf<'view'>][] => (node.kind === 'view' ? [[node.out, node]] : [])),
  )
  const origin = (id: ValueId): ValueId => {
    const view = views.get(id)
    return view === undefined ? id : origin(view.input)
  }
  const formOf = (id: ValueId): string => {
    const { shape, layout } = valueAt(graph.values, id)
    return `${layout} ${printShape(shape)}`
  }
  /** What readers of a value read: where it is a view of a value of its own shape, that. */
  const read = (id: ValueId): ValueId => (formOf(origin(id)) === formOf(id) ? origin(id) : id)
  const nodes = graph.nodes.map(
    (node): GraphNode => (node.kind === 'view' ? { ...node, input: origin(node.input) } : mapInputs(node, read)),
  )
  const outputs = Object.fromEntries(Object.entries(graph.outputs).map(([name, id]) => [name, read(id)]))
  return prune({ ...graph, nodes, outputs })
}
