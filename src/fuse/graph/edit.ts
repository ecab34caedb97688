/** Helpers for editing graphs, shared by the passes: new values and views, replaced inputs, order. */
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import {
  type Graph,
  type GraphNode,
  type GraphValue,
  inputsOf,
  type MatmulEpilogue,
  type NodeOf,
  outputsOf,
  type ValueId,
} from '../../ir/graph.js'
import type { Layout } from '../../ir/layout.js'
import { multiplyExtents, printShape, type Shape, sameExtent } from '../../ir/shape.js'
import { knownHint } from '../../nearest.js'

/** Declared layouts by name, for edges and int8 weights. */
export type LayoutsByName = ReadonlyMap<string, Layout>

/** A graph value. */
export function valueAt(values: readonly GraphValue[], id: ValueId): GraphValue {
  const value = values[id]
  if (value === undefined) throw new Error(`internal: the graph has no value ${id}`)
  return value
}

export function pushValue(values: GraphValue[], value: GraphValue): ValueId {
  values.push(value)
  return values.length - 1
}

/** A value under another shape: the value itself if it has that shape, else the result of a view that is added to `nodes`. */
export function reshape(values: GraphValue[], nodes: GraphNode[], id: ValueId, shape: Shape, name: string): ValueId {
  const value = valueAt(values, id)
  if (printShape(value.shape) === printShape(shape)) return id
  const out = pushValue(values, { ...value, shape })
  nodes.push({ kind: 'view', name, input: id, out })
  return out
}

/** Replaces every value that a node reads. */
export function mapInputs(node: GraphNode, map: (id: ValueId) => ValueId): GraphNode {
  switch (node.kind) {
    case 'op':
      return { ...node, inputs: Object.fromEntries(Object.entries(node.inputs).map(([name, id]) => [name, map(id)])) }
    case 'matmul':
      return { ...node, a: map(node.a), b: map(node.b), epilogue: mapEpilogue(node.epilogue, map) }
    case 'view':
      return { ...node, input: map(node.input) }
  }
}

function mapEpilogue(epilogue: MatmulEpilogue | undefined, map: (id: ValueId) => ValueId): MatmulEpilogue | undefined {
  if (epilogue === undefined) return undefined
  const at = (id: ValueId | undefined) => (id === undefined ? undefined : map(id))
  return { ...epilogue, bias: at(epilogue.bias), residual: at(epilogue.residual) }
}

/** The named node. @throws usage `plan.node` naming the plan and the part of it that names the node */
export function findNode(graph: Graph, plan: string, part: string, name: string): NodeOf<'op'> | NodeOf<'matmul'> {
  const node = graph.nodes.find((candidate) => candidate.name === name)
  if (node !== undefined && node.kind !== 'view') return node
  const given = getOwn(graph.inputs, name) === undefined ? getOwn(graph.weights, name) && 'a weight' : 'an input'
  const missing = given === undefined ? `which ${graph.name} does not have` : `which is ${given} of ${graph.name} and no node`
  const what = node === undefined ? missing : `which is a view in ${graph.name}, and no op or matmul`
  const nodes = graph.nodes.flatMap((known) => (known.kind === 'view' ? [] : [known.name]))
  throw usageError('plan.node', `plan ${plan}: ${part} names ${name}, ${what}`, {
    hint:
      node !== undefined
        ? 'name the op or the matmul that reads it, or whose result it shows: a view computes nothing'
        : given === undefined
          ? knownHint(name, nodes)
          : 'name a node that reads it; inputs and weights are read by every group that needs them',
    about: { path: [name] },
  })
}

/** Topological order that keeps the given order where possible. @throws usage `plan.cycle` naming the nodes that wait for each other */
export function sortNodes(nodes: readonly GraphNode[], graph: Graph): GraphNode[] {
  const ready = new Set<ValueId>([...Object.values(graph.inputs), ...Object.values(graph.weights)])
  const rest = [...nodes]
  const sorted: GraphNode[] = []
  while (rest.length > 0) {
    const next = rest.findIndex((node) => inputsOf(node).every((id) => ready.has(id)))
    const [node] = rest.splice(next, next < 0 ? 0 : 1)
    if (node === undefined) {
      const waiting = rest.map(({ name }) => name).join(', ')
      throw usageError('plan.cycle', `${graph.name}: the plan makes nodes ${waiting} wait for each other`, {
        about: { path: ['groups'], nodes: rest.map(({ name }) => name) },
      })
    }
    for (const id of outputsOf(node)) ready.add(id)
    sorted.push(node)
  }
  return sorted
}

/** Removes nodes with unused results, if `mayDrop` accepts them. */
export function prune(graph: Graph, mayDrop: (node: GraphNode) => boolean = ({ kind }) => kind === 'view'): Graph {
  const used = new Set([...graph.nodes.flatMap(inputsOf), ...Object.values(graph.outputs)])
  const nodes = graph.nodes.filter((node) => !mayDrop(node) || outputsOf(node).some((id) => used.has(id)))
  return nodes.length === graph.nodes.length ? graph : prune({ ...graph, nodes }, mayDrop)
}

/** A value and all values with the same elements under another shape, through views in both directions. */
export function aliasesOf(nodes: readonly GraphNode[], id: ValueId): ReadonlySet<ValueId> {
  const found = new Set([id])
  for (const known of found) {
    for (const node of nodes) {
      if (node.kind !== 'view') continue
      if (node.input === known) found.add(node.out)
      if (node.out === known) found.add(node.input)
    }
  }
  return found
}

/** Number of consecutive extents of the finer shape that make up each extent of the other; undefined if they do not align. */
export function runsBetween(coarse: Shape, fine: Shape): readonly number[] | undefined {
  const runs: number[] = []
  let at = 0
  for (const extent of coarse) {
    let run = 1
    while (at + run <= fine.length && !sameExtent(multiplyExtents(fine.slice(at, at + run)), extent)) run++
    if (at + run > fine.length) return undefined
    runs.push(run)
    at += run
  }
  return at === fine.length ? runs : undefined
}
