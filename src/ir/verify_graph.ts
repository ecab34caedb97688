/**
 * The verifier of graphs: invariants that every pass over a graph may rely on and must preserve. A failure is a defect of the pass, so the
 * error is internal and names it. Rules: every value is defined once, by a node, an input or a weight, before it is read; nodes bind all
 * tensors of their kernels, in their ranks; each axis of a matmul has one extent; a view preserves its size.
 */
import { type Graph, type GraphNode, inputsOf, type NodeOf, outputsOf, type ValueId } from './graph.js'
import type { Kernel, TensorParam } from './kernel.js'
import { multiplyExtents, printShape, type Shape, sameExtent } from './shape.js'

type Fail = (problem: string) => never
type Tensors = Pick<Kernel, 'tensors'>

/**
 * @param kernels kernels of the ops that nodes apply, where they are known
 * @throws an internal error naming pass, graph, node and problem
 */
export function verifyGraph(graph: Graph, pass: string, kernels: ReadonlyMap<string, Tensors> = new Map()): void {
  const failAt =
    (place: string): Fail =>
    (problem) => {
      throw new Error(`internal: after ${pass}: graph ${graph.name}: ${place}${problem}`)
    }
  const made = new Map<ValueId, string>()
  const make = (id: ValueId, by: string, fail: Fail): void => {
    if (graph.values[id] === undefined) fail(`there is no value ${id}`)
    if (made.has(id)) fail(`value ${id} is defined by ${made.get(id)} and by ${by}`)
    made.set(id, by)
  }
  for (const [name, id] of [...Object.entries(graph.inputs), ...Object.entries(graph.weights)])
    make(id, `input ${name}`, failAt(''))
  const names = new Set<string>()
  for (const node of graph.nodes) {
    const fail = failAt(`node ${node.name}: `)
    if (node.kind !== 'view' && names.has(node.name)) fail('another node has its name')
    names.add(node.name)
    const missing = inputsOf(node).find((id) => !made.has(id))
    if (missing !== undefined) fail(`value ${missing} is read before it is defined`)
    for (const id of outputsOf(node)) make(id, node.name, fail)
    verifyNode(node, (id) => graph.values[id]?.shape ?? [], kernels, fail)
  }
  for (const [name, id] of Object.entries(graph.outputs)) if (!made.has(id)) failAt('')(`output ${name} is never defined`)
}

function verifyNode(node: GraphNode, shapeOf: (id: ValueId) => Shape, kernels: ReadonlyMap<string, Tensors>, fail: Fail): void {
  switch (node.kind) {
    case 'op': {
      const kernel = kernels.get(node.op)
      for (const tensor of kernel?.tensors ?? []) verifyBound(node, tensor, shapeOf, fail)
      return
    }
    case 'matmul':
      verifyProduct(node, shapeOf, fail)
      return
    case 'view': {
      const [from, to] = [shapeOf(node.input), shapeOf(node.out)]
      if (!sameExtent(multiplyExtents(from), multiplyExtents(to)))
        fail(`a view from "${printShape(from)}" to "${printShape(to)}"`)
    }
  }
}

function verifyBound(node: NodeOf<'op'>, { name, access, dims }: TensorParam, shapeOf: (id: ValueId) => Shape, fail: Fail): void {
  const id = access === 'in' ? node.inputs[name] : node.outputs[name]
  if (id === undefined) fail(`nothing is bound to ${name} of ${node.op}`)
  const shape = id === undefined ? [] : shapeOf(id)
  if (shape.length !== dims.length) fail(`${name} of ${node.op} is "${dims.join(' ')}", its value "${printShape(shape)}"`)
}

function verifyProduct({ a, b, out, subscripts }: NodeOf<'matmul'>, shapeOf: (id: ValueId) => Shape, fail: Fail): void {
  const extents = new Map<string, Shape[number]>()
  for (const [axes, id] of [
    [subscripts.a, a],
    [subscripts.b, b],
    [subscripts.out, out],
  ] as const) {
    const shape = shapeOf(id)
    if (shape.length !== axes.length) fail(`axes "${axes.join(' ')}" of a value "${printShape(shape)}"`)
    axes.forEach((axis, at) => {
      const extent = shape[at]
      const known = extents.get(axis) ?? extent
      if (extent === undefined || known === undefined) return
      if (!sameExtent(known, extent)) fail(`axis ${axis} has extents ${printShape([known])} and ${printShape([extent])}`)
      extents.set(axis, known)
    })
  }
}
