/** Joins views of views. Passes that insert views leave chains, of which only the first value and the last shape matter. */
import type { Graph, GraphNode, NodeOf, ValueId } from '../../ir/graph.js'
import { printShape } from '../../ir/shape.js'
import { mapInputs, prune, valueAt } from './edit.js'

/** Removes views of views, and views with the shape of their input. */
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
  /** The value that readers use: the origin of a view if it has the view's shape, else the value itself. */
  const read = (id: ValueId): ValueId => (formOf(origin(id)) === formOf(id) ? origin(id) : id)
  const nodes = graph.nodes.map(
    (node): GraphNode => (node.kind === 'view' ? { ...node, input: origin(node.input) } : mapInputs(node, read)),
  )
  const outputs = Object.fromEntries(Object.entries(graph.outputs).map(([name, id]) => [name, read(id)]))
  return prune({ ...graph, nodes, outputs })
}
