/** Runs graphs on the host through the IR evaluator, in double precision: how fused graphs are compared with unfused ones. */
import type { PlannedKernel } from '../../src/fuse/apply.js'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { Graph, GraphNode, MatmulEpilogue, ValueId } from '../../src/ir/graph.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import { isTemplate } from '../../src/ir/template.js'

type Numbers = Readonly<Record<string, number>>

/** Logical shape of a graph value for concrete dimensions. */
export const shapeOf = (graph: Graph, id: ValueId, dims: Numbers): number[] =>
  (graph.values[id]?.shape ?? []).map((extent) => evaluateExtent(extent, dims))

/** Values of the graph's outputs for the given inputs and weights (by name). Layouts play no part: tensors are logical. */
export function runGraph(
  graph: Graph,
  kernels: ReadonlyMap<string, PlannedKernel>,
  given: Readonly<Record<string, ArrayLike<number>>>,
  dims: Numbers,
  attrs: Numbers,
  weights = given,
): Record<string, ArrayLike<number>> {
  const data = runValues(graph, kernels, given, dims, attrs, weights)
  return Object.fromEntries(Object.entries(graph.outputs).map(([name, id]) => [name, data.get(id) ?? []]))
}

/** All values of the graph, as `runGraph` takes its arguments. */
export function runValues(
  graph: Graph,
  kernels: ReadonlyMap<string, PlannedKernel>,
  given: Readonly<Record<string, ArrayLike<number>>>,
  dims: Numbers,
  attrs: Numbers,
  weights = given,
): ReadonlyMap<ValueId, ArrayLike<number>> {
  const data = new Map<ValueId, ArrayLike<number>>()
  for (const [name, id] of Object.entries(graph.inputs)) data.set(id, given[name] ?? [])
  for (const [name, id] of Object.entries(graph.weights)) data.set(id, weights[name] ?? [])
  const tensor = (id: ValueId): HostTensor => ({ data: data.get(id) ?? [], shape: shapeOf(graph, id, dims) })
  for (const node of graph.nodes) runNode(node, tensor, data, kernels, dims, attrs)
  return data
}

function runNode(
  node: GraphNode,
  tensor: (id: ValueId) => HostTensor,
  data: Map<ValueId, ArrayLike<number>>,
  kernels: ReadonlyMap<string, PlannedKernel>,
  dims: Numbers,
  attrs: Numbers,
): void {
  switch (node.kind) {
    case 'view':
      data.set(node.out, tensor(node.input).data)
      return
    case 'matmul': {
      const product = einsum(node.subscripts, tensor(node.a), tensor(node.b))
      data.set(node.out, node.epilogue === undefined ? product : finish(product, node.epilogue, tensor))
      return
    }
    case 'op': {
      const kernel = kernels.get(node.op)
      if (kernel === undefined) throw new Error(`no kernel ${node.op}`)
      const ids = { ...node.inputs, ...node.outputs }
      const sizes: Record<string, number> = {}
      for (const param of kernel.tensors) {
        const shape = tensor(ids[param.name] ?? -1).shape
        param.dims.forEach((dim, i) => {
          sizes[dim] = shape[i] ?? 0
        })
      }
      const inputs = Object.fromEntries(Object.entries(node.inputs).map(([name, id]) => [name, tensor(id)]))
      const values = Object.fromEntries(
        Object.entries(node.attrs).map(([name, value]) => [
          name,
          typeof value === 'number' ? value : (('dim' in value ? dims[value.dim] : attrs[value.attr]) ?? Number.NaN),
        ]),
      )
      const outputs = isTemplate(kernel)
        ? evaluateTemplate(kernel, inputs, sizes, values)
        : evaluateKernel(kernel, inputs, sizes, values)
      for (const [name, id] of Object.entries(node.outputs)) data.set(id, outputs[name]?.data ?? [])
    }
  }
}

/** What a library's epilogue makes of a product. */
function finish(
  product: Float64Array,
  { bias, residual, relu }: MatmulEpilogue,
  tensor: (id: ValueId) => HostTensor,
): Float64Array {
  const added = (id: ValueId | undefined, i: number): number => {
    if (id === undefined) return 0
    const { data } = tensor(id)
    return data[i % data.length] ?? Number.NaN
  }
  return product.map((sum, i) => {
    const whole = sum + added(bias, i) + added(residual, i)
    return relu ? Math.max(whole, 0) : whole
  })
}

/** The product over named axes, by the definition: one sum for each element of the result. */
function einsum(
  subscripts: { a: readonly string[]; b: readonly string[]; out: readonly string[] },
  a: HostTensor,
  b: HostTensor,
): Float64Array {
  const extents: Record<string, number> = {}
  subscripts.a.forEach((axis, i) => {
    extents[axis] = a.shape[i] ?? 0
  })
  subscripts.b.forEach((axis, i) => {
    extents[axis] = b.shape[i] ?? 0
  })
  const summed = Object.keys(extents).filter((axis) => !subscripts.out.includes(axis))
  const count = (axes: readonly string[]) => axes.reduce((product, axis) => product * (extents[axis] ?? 0), 1)
  const at = (axes: readonly string[], point: Numbers) =>
    axes.reduce((offset, axis) => offset * (extents[axis] ?? 0) + (point[axis] ?? 0), 0)
  const pointOf = (axes: readonly string[], flat: number): Record<string, number> => {
    const point: Record<string, number> = {}
    let rest = flat
    for (const axis of [...axes].reverse()) {
      point[axis] = rest % (extents[axis] ?? 1)
      rest = Math.floor(rest / (extents[axis] ?? 1))
    }
    return point
  }
  return Float64Array.from({ length: count(subscripts.out) }, (_, flat) => {
    const outer = pointOf(subscripts.out, flat)
    let total = 0
    for (let k = 0; k < count(summed); k++) {
      const point = { ...outer, ...pointOf(summed, k) }
      total += (a.data[at(subscripts.a, point)] ?? 0) * (b.data[at(subscripts.b, point)] ?? 0)
    }
    return total
  })
}
