/** Nodes that replace a group in its graph: the derived kernel, or the library's matmul, with views of their inputs and results. */
import type { GraphNode, GraphValue, NodeOf, ValueId } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { printShape } from '../ir/shape.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { pushValue } from './graph/edit.js'
import { libraryEpilogue } from './product/library.js'
import type { Derived } from './rows/derive.js'
import type { Binding } from './space/parameters.js'

type GroupNode = NodeOf<'op'> | NodeOf<'matmul'>

/** The fused node, with a view for each value that it uses in another shape. */
export function fusedNodes(
  values: GraphValue[],
  name: string,
  members: readonly GroupNode[],
  derived: Derived<Kernel | TemplateKernel>,
): { readonly views: readonly NodeOf<'view'>[]; readonly node: NodeOf<'op'> } {
  const all = members.map((node) => node.name)
  const label = all.length > 3 ? `${name}(${all[0]}..${all.at(-1)})` : all.join('+')
  const views: NodeOf<'view'>[] = []
  const reshaped = ({ param, value: id, shape }: Binding): ValueId => {
    const value = values[id]
    if (value === undefined || printShape(value.shape) === printShape(shape)) return id
    const layout = derived.kernel.tensors.find(({ name: tensor }) => tensor === param)?.layout.name ?? value.layout
    return pushValue(values, { ...value, shape, layout })
  }
  const inputs = derived.inputs.map((binding) => {
    const id = reshaped(binding)
    if (id !== binding.value) views.push({ kind: 'view', name: `${label}.${binding.param}`, input: binding.value, out: id })
    return [binding.param, id] as const
  })
  const outputs = derived.outputs.map((binding) => {
    const id = reshaped(binding)
    if (id !== binding.value) views.push({ kind: 'view', name: `${label}.${binding.param}`, input: id, out: binding.value })
    return [binding.param, id] as const
  })
  const types = Object.fromEntries(Object.keys(derived.kernel.types).map((param) => [param, { param }]))
  const node: NodeOf<'op'> = {
    kind: 'op',
    name: label,
    op: name,
    types,
    inputs: Object.fromEntries(inputs),
    outputs: Object.fromEntries(outputs),
    attrs: derived.attrs,
  }
  return { views, node }
}

/** The library's matmul for a group, with its views. @throws usage `plan.library` */
export function libraryNodes(
  values: GraphValue[],
  name: string,
  matmul: NodeOf<'matmul'>,
  members: readonly GroupNode[],
  derived: Derived<Kernel | TemplateKernel>,
): GraphNode[] {
  const { kernel } = derived
  if (!isTemplate(kernel) || kernel.kind !== 'matmul') throw new Error(`internal: group ${name} derived no matmul`)
  const ends = [matmul.name, members.at(-1)?.name ?? ''] as const
  const { bias, residual, relu } = libraryEpilogue(name, ends, kernel)
  const { views, node } = fusedNodes(values, name, members, derived)
  const input = (param: string | undefined) => (param === undefined ? undefined : node.inputs[param])
  const [a, b, out] = [input(kernel.a.tensor), input(kernel.products[0].b.tensor), Object.values(node.outputs)[0]]
  if (a === undefined || b === undefined || out === undefined) throw new Error(`internal: group ${name} binds no matmul`)
  const epilogue = { bias: input(bias), residual: input(residual), relu }
  return [...views, { ...matmul, name: node.name, a, b, out, epilogue }]
}
