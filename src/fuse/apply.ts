/**
 * Applies a plan to a graph: every group becomes one node whose kernel is derived from its members, everything else stays.
 * Values the fused kernel sees in a finer shape pass through views, which move nothing. Refuses groups that overlap, that
 * would make a cycle, or whose bodies cannot be merged.
 */
import { usageError } from '../errors.js'
import type { Graph, GraphNode, GraphValue, NodeOf, ValueId } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { printKernel } from '../ir/print.js'
import { printShape, type Shape } from '../ir/shape.js'
import type { PlanDecl } from '../lang/plan.js'
import { type Derived, deriveKernel } from './derive.js'
import type { Binding } from './parameters.js'
import { illegal, type Member } from './space.js'

export interface PlannedGraph {
  readonly graph: Graph
  /** The kernels the plan derives, by name. */
  readonly kernels: ReadonlyMap<string, Kernel>
}

const inputsOf = (node: GraphNode): readonly ValueId[] =>
  node.kind === 'op' ? Object.values(node.inputs) : node.kind === 'matmul' ? [node.a, node.b] : [node.input]
const outputsOf = (node: GraphNode): readonly ValueId[] => (node.kind === 'op' ? Object.values(node.outputs) : [node.out])

/**
 * @param ops kernels of the graph's ops, by name
 * @throws usage `plan.node` for a name the graph lacks, `plan.overlap`, `plan.cycle`, `plan.illegal`, `plan.differ`
 */
export function applyPlan(graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>): PlannedGraph {
  const kernels = new Map<string, Kernel>()
  const values: GraphValue[] = [...graph.values]
  const replaced = new Map<GraphNode, string>()
  const fused: GraphNode[] = []
  for (const { kernel: name, occurrences } of plan.groups) {
    for (const names of occurrences) {
      const members = names.map((member) => memberOf(graph, plan.name, name, member, ops))
      const ordered = graph.nodes.flatMap((node) => members.find((member) => member.node === node) ?? [])
      for (const { node } of ordered) {
        const other = replaced.get(node)
        if (other !== undefined)
          throw usageError('plan.overlap', `plan ${plan.name}: node ${node.name} is in groups ${other} and ${name}`)
        replaced.set(node, name)
      }
      checkConvex(graph, name, ordered)
      const derived = deriveKernel(graph, name, ordered, innerViews(graph, ordered), neededOutside(graph, ordered))
      const known = kernels.get(name)
      if (known !== undefined && !sameKernel(known, derived.kernel)) {
        throw usageError('plan.differ', `plan ${plan.name}: the occurrences of ${name} derive different kernels`, {
          hint: 'give the occurrences different kernel names',
        })
      }
      kernels.set(name, known ?? derived.kernel)
      fused.push(...fusedNodes(values, name, ordered, derived))
    }
  }
  const kept = graph.nodes.filter((node) => !replaced.has(node))
  const planned = prune({ ...graph, values, nodes: [...kept, ...fused] })
  return { graph: { ...planned, nodes: sortNodes(planned.nodes, graph) }, kernels }
}

/** Equal but for where they were written. */
export const sameKernel = (a: Kernel, b: Kernel): boolean => printKernel({ ...a, source: b.source }) === printKernel(b)

function memberOf(graph: Graph, plan: string, group: string, name: string, ops: ReadonlyMap<string, Kernel>): Member {
  const node = graph.nodes.find((candidate) => candidate.name === name)
  if (node === undefined)
    throw usageError('plan.node', `plan ${plan}: group ${group} names ${name}, which ${graph.name} does not have`)
  if (node.kind !== 'op') {
    throw usageError('plan.node', `plan ${plan}: group ${group} names ${name}, which is a ${node.kind}`, {
      hint: 'only op nodes fuse into a kernel',
    })
  }
  const kernel = ops.get(node.op)
  if (kernel === undefined) throw usageError('plan.op', `plan ${plan}: node ${name} uses op ${node.op}, which no spec declares`)
  return { node, kernel }
}

/** Views whose input a member computes and whose result a member reads. */
function innerViews(graph: Graph, members: readonly Member[]): NodeOf<'view'>[] {
  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  const read = new Set(members.flatMap(({ node }) => Object.values(node.inputs)))
  return graph.nodes.filter((node): node is NodeOf<'view'> => node.kind === 'view' && made.has(node.input) && read.has(node.out))
}

/** Values of the group that other nodes or the graph's outputs read, directly or through a view. */
function neededOutside(graph: Graph, members: readonly Member[]): Set<ValueId> {
  const inside = new Set<GraphNode>([...members.map(({ node }) => node)])
  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  const usedBy = (value: ValueId): boolean =>
    Object.values(graph.outputs).includes(value) ||
    graph.nodes.some((node) => !inside.has(node) && inputsOf(node).includes(value) && (node.kind !== 'view' || usedBy(node.out)))
  return new Set([...made].filter(usedBy))
}

/** No path may leave the group and come back: the fused node would wait for itself. */
function checkConvex(graph: Graph, group: string, members: readonly Member[]): void {
  const inside = new Set<GraphNode>(members.map(({ node }) => node))
  const tainted = new Map<ValueId, string>()
  for (const node of graph.nodes) {
    const from = inputsOf(node)
      .map((id) => tainted.get(id))
      .find((name) => name !== undefined)
    if (inside.has(node)) {
      if (from !== undefined) {
        throw illegal(group, from, node.name, 'another node between them would have to run inside the kernel')
      }
      continue
    }
    const leaves = members.find((member) => inputsOf(node).some((id) => outputsOf(member.node).includes(id)))
    const origin = from ?? (node.kind === 'view' ? undefined : leaves?.node.name)
    if (origin !== undefined) for (const id of outputsOf(node)) tainted.set(id, origin)
    if (
      node.kind === 'view' &&
      leaves !== undefined &&
      origin === undefined &&
      !members.some((m) => inputsOf(m.node).includes(node.out))
    ) {
      tainted.set(node.out, leaves.node.name)
    }
  }
}

/** The fused node, with a view for every value it sees in another shape. */
function fusedNodes(values: GraphValue[], name: string, members: readonly Member[], derived: Derived): GraphNode[] {
  const label = members.map(({ node }) => node.name).join('+')
  const views: GraphNode[] = []
  const reshaped = (binding: Binding): ValueId => {
    const value = values[binding.value]
    if (value === undefined || printShape(value.shape) === printShape(binding.shape)) return binding.value
    return pushShape(values, value, binding.shape)
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
  const node: GraphNode = {
    kind: 'op',
    name: label,
    op: name,
    types,
    inputs: Object.fromEntries(inputs),
    outputs: Object.fromEntries(outputs),
    attrs: derived.attrs,
  }
  return [...views, node]
}

function pushShape(values: GraphValue[], value: GraphValue, shape: Shape): ValueId {
  values.push({ ...value, shape })
  return values.length - 1
}

/** Topological order that keeps the given order where it can. */
function sortNodes(nodes: readonly GraphNode[], graph: Graph): GraphNode[] {
  const ready = new Set<ValueId>([...Object.values(graph.inputs), ...Object.values(graph.weights)])
  const rest = [...nodes]
  const sorted: GraphNode[] = []
  while (rest.length > 0) {
    const next = rest.findIndex((node) => inputsOf(node).every((id) => ready.has(id)))
    const [node] = rest.splice(next, next < 0 ? 0 : 1)
    if (node === undefined)
      throw usageError(
        'plan.cycle',
        `${graph.name}: the plan makes nodes ${rest.map(({ name }) => name).join(', ')} wait for each other`,
      )
    for (const id of outputsOf(node)) ready.add(id)
    sorted.push(node)
  }
  return sorted
}

/** Drops views nobody reads any more. */
function prune(graph: Graph): Graph {
  const used = new Set([...graph.nodes.flatMap(inputsOf), ...Object.values(graph.outputs)])
  const nodes = graph.nodes.filter((node) => node.kind !== 'view' || used.has(node.out))
  return nodes.length === graph.nodes.length ? graph : prune({ ...graph, nodes })
}
