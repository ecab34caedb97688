/**
 * Nodes that quantisation adds to a graph: ops of matrices on values of any rank, views of values that may be views already, and attributes that
 * are scales. They are added to the values and nodes of the new graph.
 */
import {
  type Graph,
  type GraphNode,
  type GraphValue,
  type NodeOf,
  outputsOf,
  type Scale,
  type ScaleForm,
  type ValueId,
} from '../../ir/graph.js'
import type { DTypeRef } from '../../ir/kernel.js'
import { multiplyExtents, printShape, type Shape } from '../../ir/shape.js'
import { inverseName, scaleName } from '../../lang/node_names.js'
import { isNodeOf } from '../../lang/op_node.js'
import { packRows } from '../../std/index.js'
import { pushValue, reshape, valueAt } from './edit.js'

export class Int8Nodes {
  readonly #graph: Graph
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[]
  /** Values on a path from a quantised value to an integer matmul. */
  readonly #traced: ReadonlySet<ValueId>
  readonly #attrs: Set<string>
  readonly #known: Record<string, Scale>

  /** @param values and `nodes` of the new graph, which grow */
  constructor(graph: Graph, values: GraphValue[], nodes: GraphNode[], traced: ReadonlySet<ValueId>) {
    this.#graph = graph
    this.#values = values
    this.#nodes = nodes
    this.#traced = traced
    this.#attrs = new Set(graph.attrs)
    this.#known = { ...graph.scales }
  }

  /** The attributes of the graph, including scales, and the calibration site of each scale. */
  scales(): { readonly attrs: readonly string[]; readonly scales: Readonly<Record<string, Scale>> } {
    return { attrs: [...this.#attrs], scales: this.#known }
  }

  /** Attribute with the scale of a quantised value, by the value's calibration site. */
  scale(as: ScaleForm, name: string): { readonly attr: string } {
    const site = siteOf(this.#graph, name)
    const attr = as === 'inverse' ? inverseName(site) : scaleName(site)
    this.#attrs.add(attr)
    this.#known[attr] = { site, as }
    return { attr }
  }

  /** Applies an op on `m n` matrices, made by `make`, to a value of any rank; the result has the value's shape and layout. */
  elementwise(
    id: ValueId,
    name: string,
    result: DTypeRef,
    make: (name: string, x: ValueId, y: ValueId) => GraphNode,
    given?: ValueId,
  ): ValueId {
    const { shape, layout } = valueAt(this.#values, id)
    const flat = this.matrixOf(id)
    const x = reshape(this.#values, this.#nodes, id, flat, `${name}.x`)
    const same = printShape(flat) === printShape(shape)
    const y = same && given !== undefined ? given : pushValue(this.#values, { dtype: result, shape: flat, layout })
    this.#nodes.push(make(name, x, y))
    if (same) return y
    const out = given ?? pushValue(this.#values, { dtype: result, shape, layout })
    this.#nodes.push({ kind: 'view', name: `${name}.y`, input: y, out })
    return out
  }

  /** The shape of a value as a matrix of rows: its shape on the path to a matmul, else with all but the last extent multiplied. */
  matrixOf(id: ValueId): Shape {
    const { shape } = valueAt(this.#values, id)
    if (shape.length === 2) return shape
    const seen = this.#graph.nodes.flatMap((node) =>
      node.kind === 'view' && node.input === id && this.#traced.has(node.out) ? [valueAt(this.#values, node.out).shape] : [],
    )
    return seen.find(({ length }) => length === 2) ?? [multiplyExtents(shape.slice(0, -1)), ...shape.slice(-1)]
  }

  /** Adds a view of the origin of the viewed value, unless that has the wanted shape already. */
  view(node: NodeOf<'view'>): ValueId {
    const through = this.#nodes.find((other) => other.kind === 'view' && other.out === node.input)
    const input = through?.kind === 'view' ? through.input : node.input
    const shapes = [input, node.out].map((id) => printShape(valueAt(this.#values, id).shape))
    if (through !== undefined && shapes[0] === shapes[1]) return input
    this.#nodes.push({ ...node, input })
    return node.out
  }
}

/** Calibration site of a node's result or of an input. Packed rows have the site of the value that they were packed from. */
function siteOf({ nodes }: Graph, name: string): string {
  const makerOf = (id: ValueId): GraphNode | undefined => {
    const found = nodes.find((node) => outputsOf(node).includes(id))
    return found?.kind === 'view' ? makerOf(found.input) : found
  }
  const node = nodes.find((candidate) => candidate.name === name)
  return node !== undefined && isNodeOf(packRows, node) ? (makerOf(node.inputs.x)?.name ?? name) : name
}
