/** Printer of graphs in readable form: one line per node, with the shapes and layouts of its outputs. */
import { type AttrValue, type Graph, type GraphNode, outputsOf, type ValueId } from './graph.js'
import { printType } from './kernel.js'
import { printShape } from './shape.js'

const attrText = (value: AttrValue): string =>
  typeof value === 'number' ? String(value) : 'attr' in value ? value.attr : value.dim

export function printGraph(graph: Graph): string {
  const names = new Map<ValueId, string>()
  for (const [name, id] of [...Object.entries(graph.inputs), ...Object.entries(graph.weights)]) names.set(id, name)
  const taken = new Set(names.values())
  for (const node of graph.nodes) {
    const outputs = outputsOf(node)
    outputs.forEach((id, at) => {
      const wanted = outputs.length === 1 ? node.name : `${node.name}.${at}`
      names.set(id, taken.has(wanted) ? `${wanted}'` : wanted)
    })
  }
  const nameOf = (id: ValueId): string => names.get(id) ?? `value ${id}`
  const typeOf = (id: ValueId): string => {
    const value = graph.values[id]
    if (value === undefined) return ''
    return `${printType(value.dtype)} "${printShape(value.shape)}"${value.layout === 'row' ? '' : ` ${value.layout}`}`
  }
  const declared = (of: Readonly<Record<string, ValueId>>, what: string) =>
    Object.entries(of).map(([name, id]) => `  ${what} ${name}: ${typeOf(id)}`)
  const made = (node: GraphNode): string =>
    outputsOf(node)
      .map((id) => `${nameOf(id)}: ${typeOf(id)}`)
      .join(', ')
  const how = (node: GraphNode): string => {
    switch (node.kind) {
      case 'view':
        return `view of ${nameOf(node.input)}`
      case 'matmul': {
        const { a, b, out } = node.subscripts
        return `matmul "${a.join(' ')}, ${b.join(' ')} -> ${out.join(' ')}" of ${nameOf(node.a)}, ${nameOf(node.b)}`
      }
      case 'op': {
        const inputs = Object.entries(node.inputs).map(([name, id]) => `${name} = ${nameOf(id)}`)
        const attrs = Object.entries(node.attrs).map(([name, value]) => `${name} = ${attrText(value)}`)
        return `${node.op}(${[...inputs, ...attrs].join(', ')})`
      }
    }
  }
  return [
    `graph ${graph.name}`,
    ...declared(graph.inputs, 'input'),
    ...declared(graph.weights, 'weight'),
    ...graph.nodes.map((node) => `  ${made(node)} = ${how(node)}`),
    ...Object.entries(graph.outputs).map(([name, id]) => `  output ${name} = ${nameOf(id)}`),
    '',
  ].join('\n')
}
