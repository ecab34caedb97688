/**
 * Evaluates graphs on the host, node by node, in double precision: every op by its own body, every matmul by its definition. The values that a
 * group's nodes yield this way define the meaning of the group; the kernel derived from them is checked against it. Layouts play no part: tensors are
 * logical.
 */
import { evaluateKernel, type HostTensor } from '../../ir/evaluate.js'
import { evaluateTemplate } from '../../ir/evaluate_template.js'
import type { AttrValue, Graph, GraphNode, MatmulEpilogue, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { evaluateDim, evaluateExtent } from '../../ir/shape.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'

type Numbers = Readonly<Record<string, number>>
type Data = ArrayLike<number>

/** Inputs of a run besides the graph: values that no node computes, extents of dimensions, and attributes. */
export interface Given {
  readonly values: ReadonlyMap<ValueId, Data>
  readonly dims: Numbers
  readonly attrs: Numbers
  readonly kernels: ReadonlyMap<string, Kernel | TemplateKernel>
  /** Replaces a value once it is computed; keeps it by default. */
  readonly revise?: (id: ValueId, made: HostTensor) => Data
}

/** Logical shape of a graph value for concrete dimensions. */
export const shapeOf = (graph: Graph, id: ValueId, dims: Numbers): number[] =>
  (graph.values[id]?.shape ?? []).map((extent) => evaluateExtent(extent, dims))

/** Value of a node's attribute. */
export const attrOf = (value: AttrValue, dims: Numbers, attrs: Numbers): number =>
  typeof value === 'number' ? value : (('dim' in value ? evaluateDim(value.dim, dims) : attrs[value.attr]) ?? Number.NaN)

/** Values that nodes compute, and those given. @throws finding `evaluate.bounds` when a body reads outside of a tensor */
export function runNodes(graph: Graph, nodes: readonly GraphNode[], given: Given): Map<ValueId, Data> {
  const data = new Map<ValueId, Data>(given.values)
  const tensor = (id: ValueId): HostTensor => ({ data: data.get(id) ?? [], shape: shapeOf(graph, id, given.dims) })
  const { revise } = given
  for (const node of nodes) {
    for (const [id, made] of runNode(node, tensor, given)) {
      data.set(id, made)
      if (revise !== undefined) data.set(id, revise(id, tensor(id)))
    }
  }
  return data
}

function runNode(node: GraphNode, tensor: (id: ValueId) => HostTensor, given: Given): readonly (readonly [ValueId, Data])[] {
  switch (node.kind) {
    case 'view':
      return [[node.out, tensor(node.input).data]]
    case 'matmul': {
      const product = einsum(node.subscripts, tensor(node.a), tensor(node.b))
      return [[node.out, node.epilogue === undefined ? product : finish(product, node.epilogue, tensor)]]
    }
    case 'op':
      return runOp(node, tensor, given)
  }
}

function runOp(
  node: NodeOf<'op'>,
  tensor: (id: ValueId) => HostTensor,
  { kernels, dims, attrs }: Given,
): readonly (readonly [ValueId, Data])[] {
  const kernel = kernels.get(node.op)
  if (kernel === undefined) throw new Error(`internal: no kernel ${node.op}`)
  const ids = { ...node.inputs, ...node.outputs }
  const sizes: Record<string, number> = {}
  for (const param of kernel.tensors) {
    const { shape } = tensor(ids[param.name] ?? -1)
    param.dims.forEach((dim, axis) => {
      sizes[dim] = shape[axis] ?? 0
    })
  }
  const inputs = Object.fromEntries(Object.entries(node.inputs).map(([name, id]) => [name, tensor(id)]))
  const values = Object.fromEntries(Object.entries(node.attrs).map(([name, value]) => [name, attrOf(value, dims, attrs)]))
  const outputs = isTemplate(kernel)
    ? evaluateTemplate(kernel, inputs, sizes, values)
    : evaluateKernel(kernel, inputs, sizes, values)
  return Object.entries(node.outputs).map(([name, id]) => [id, outputs[name]?.data ?? []] as const)
}

/** Applies a library epilogue to a matmul. */
function finish(
  product: Float64Array,
  { bias, residual, relu }: MatmulEpilogue,
  tensor: (id: ValueId) => HostTensor,
): Float64Array {
  const added = (id: ValueId | undefined, at: number): number => {
    if (id === undefined) return 0
    const { data } = tensor(id)
    return data[at % data.length] ?? Number.NaN
  }
  return product.map((sum, at) => {
    const whole = sum + added(bias, at) + added(residual, at)
    return relu ? Math.max(whole, 0) : whole
  })
}

/** The matmul over named axes, by definition: one sum per element of the result. */
function einsum({ a: ofA, b: ofB, out }: NodeOf<'matmul'>['subscripts'], a: HostTensor, b: HostTensor): Float64Array {
  const extents: Record<string, number> = {}
  ofA.forEach((axis, at) => {
    extents[axis] = a.shape[at] ?? 0
  })
  ofB.forEach((axis, at) => {
    extents[axis] = b.shape[at] ?? 0
  })
  const summed = Object.keys(extents).filter((axis) => !out.includes(axis))
  const count = (axes: readonly string[]) => axes.reduce((product, axis) => product * (extents[axis] ?? 0), 1)
  /**
   * Offsets into a tensor with some axes, at each point of others. A term then costs one sum; looking up axes by name at each point would take
   * most of a check.
   */
  const offsets = (over: readonly string[], axes: readonly string[]): Float64Array => {
    const strides = over.map((axis) => axes.reduce((sum, name, at) => (name === axis ? sum + count(axes.slice(at + 1)) : sum), 0))
    return new Float64Array(count(over)).map((_, flat) => {
      let [rest, offset] = [flat, 0]
      for (let axis = over.length - 1; axis >= 0; axis--) {
        const extent = extents[over[axis] ?? ''] ?? 1
        offset += (rest % extent) * (strides[axis] ?? 0)
        rest = Math.floor(rest / extent)
      }
      return offset
    })
  }
  const [outerA, outerB, innerA, innerB] = [offsets(out, ofA), offsets(out, ofB), offsets(summed, ofA), offsets(summed, ofB)]
  return outerA.map((fromA, flat) => {
    const fromB = outerB[flat] ?? 0
    let total = 0
    for (let k = 0; k < innerA.length; k++)
      total += (a.data[fromA + (innerA[k] ?? 0)] ?? 0) * (b.data[fromB + (innerB[k] ?? 0)] ?? 0)
    return total
  })
}
