/**
 * The steps a quantised graph gets beside its nodes: ops of matrices on values of any rank, views of what is a view already, and attributes
 * that are scales. They are added to the values and nodes of the graph that is being made.
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
import { isNodeOf } from '../../lang/op_node.js'
import { inverseName, stepName } from '../../lang/step_names.js'
import { packRows } from '../../std/index.js'
import { pushValue, reshape, valueAt } from './edit.js'

export class Int8Steps {
  readonly #graph: Graph
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[]
  /** Values on the way from a quantised value to a product of integers. */
  readonly #traced: ReadonlySet<ValueId>
  readonly #attrs: Set<string>
  readonly #known: Record<string, Scale>

  /** @param values and `nodes` of the graph that is being made, which grow */
  constructor(graph: Graph, values: GraphValue[], nodes: GraphNode[], traced: ReadonlySet<ValueId>) {
    this.#graph = graph
    this.#values = values
    this.#nodes = nodes
    this.#traced = traced
    this.#attrs = new Set(graph.attrs)
    this.#known = { ...graph.scales }
  }

  /** The attributes of the graph with those that are scales, and what each of these is of. */
  scales(): { readonly attrs: readonly string[]; readonly scales: Readonly<Record<string, Scale>> } {
    return { attrs: [...this.#attrs], scales: this.#known }
  }

  /** The attribute that is a scale of a quantised value, by what calibration knows the value as. */
  scale(as: ScaleForm, name: string): { readonly attr: string } {
    const site = siteOf(this.#graph, name)
    const attr = as === 'inverse' ? inverseName(site) : stepName(site)
    this.#attrs.add(attr)
    this.#known[attr] = { site, as }
    return { attr }
  }

  /** Applies an op of `m n` matrices, as `make` says, to a value of any rank; the result has the value's shape and layout. */
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

  /** The shape of a value as a matrix of rows: the one its way to a matmul sees it in, else all but the last extent multiplied. */
  matrixOf(id: ValueId): Shape {
    const { shape } = valueAt(this.#values, id)
    if (shape.length === 2) return shape
    const seen = this.#graph.nodes.flatMap((node) =>
      node.kind === 'view' && node.input === id && this.#traced.has(node.out) ? [valueAt(this.#values, node.out).shape] : [],
    )
    return seen.find(({ length }) => length === 2) ?? [multiplyExtents(shape.slice(0, -1)), ...shape.slice(-1)]
  }

  /** Adds a view of what the viewed value is itself a view of, unless that has the wanted shape already. */
  view(node: NodeOf<'view'>): ValueId {
    const through = this.#nodes.find((other) => other.kind === 'view' && other.out === node.input)
    const input = through?.kind === 'view' ? through.input : node.input
    const shapes = [input, node.out].map((id) => printShape(valueAt(this.#values, id).shape))
    if (through !== undefined && shapes[0] === shapes[1]) return input
    this.#nodes.push({ ...node, input })
    return node.out
  }
}

/** What calibration knows a node's result or an input as: packed rows are known as what they were packed from. */
function siteOf({ nodes }: Graph, name: string): string {
  const makerOf = (id: ValueId): GraphNode | undefined => {
    const found = nodes.find((node) => outputsOf(node).includes(id))
    return found?.kind === 'view' ? makerOf(found.input) : found
  }
  const node = nodes.find((candidate) => candidate.name === name)
  return node !== undefined && isNodeOf(packRows, node) ? (makerOf(node.inputs.x)?.name ?? name) : name
}
