/**
 * Quantises a graph: the values that a plan names get an int8 form, and matmuls that read only such values and weights multiply integers. Nodes
 * between a value and its matmul that only move elements move int8 instead. The scale of a value is an attribute, or a tensor that is computed
 * with the value and has one element per row. A matmul may also take only its weight as int8. Runs after padding is removed and nodes are
 * stacked, before edges and groups, so that both can name the steps it adds.
 */
import { usageError } from '../../errors.js'
import { type Graph, type GraphNode, type GraphValue, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import type { DTypeRef, Kernel } from '../../ir/kernel.js'
import { floatName, int8Name, scalesName } from '../../lang/node_names.js'
import { isNodeOf, opNode } from '../../lang/op_node.js'
import type { PlanDecl, QuantisedDecl } from '../../lang/plan.js'
import {
  dequantize,
  dequantizeChannels,
  dequantizeProduct,
  dequantizeRows,
  quantize,
  quantizeRows,
  scaleChannels,
} from '../../std/index.js'
import { mapInputs, prune, pushValue, reshape, valueAt } from './edit.js'
import { Int8Nodes } from './int8_nodes.js'
import { Int8Propagation } from './int8_propagation.js'
import { Int8Weights } from './int8_weights.js'
import { floatProduct, quantisedValue, refuseUnquantised } from './quantised_names.js'
import { RowScales, rowAxes } from './row_scales.js'

/**
 * @param ops kernels of the graph's ops, by name
 * @throws usage `plan.quantised` for a name that the graph or `values` lacks; for a value that is both moved as int8 and read as floats; for a
 * matmul that does not fit the scales of its operands
 */
export function quantiseGraph(graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>): Graph {
  return plan.quantised === undefined ? graph : new Quantiser(graph, plan.name, plan.quantised, ops).run()
}

class Quantiser {
  readonly #graph: Graph
  readonly #plan: string
  readonly #config: QuantisedDecl
  readonly #propagation: Int8Propagation
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[] = []
  readonly #inputs: Record<string, ValueId>
  readonly #weights: Int8Weights
  readonly #rows: RowScales
  readonly #steps: Int8Nodes
  /** Matmuls that take only their weight as int8. */
  readonly #weightOnly: ReadonlySet<GraphNode>
  readonly #outputs: Record<string, ValueId>
  readonly #forms: { readonly inputs: Record<string, string>; readonly outputs: Record<string, string> }
  /** Int8 forms by value. */
  readonly #int8 = new Map<ValueId, ValueId>()
  /** Values that float readers read instead of a quantised one. */
  readonly #floats = new Map<ValueId, ValueId>()

  constructor(graph: Graph, plan: string, config: QuantisedDecl, ops: ReadonlyMap<string, Kernel>) {
    this.#graph = graph
    this.#plan = plan
    this.#config = config
    this.#values = [...graph.values]
    this.#inputs = { ...graph.inputs }
    this.#outputs = { ...graph.outputs }
    this.#forms = { inputs: { ...graph.int8?.inputs }, outputs: { ...graph.int8?.outputs } }
    refuseUnquantised(plan, config)
    const named = [...config.values, ...config.dynamic].map((name): [ValueId, string] => [
      quantisedValue(graph, plan, name),
      name,
    ])
    this.#propagation = new Int8Propagation(graph, ops, new Map(named))
    this.#weightOnly = new Set(config.weightOnly.map((name) => floatProduct(graph, plan, this.#propagation, name)))
    const reads = (node: GraphNode): boolean => this.#propagation.integer.has(node) || this.#weightOnly.has(node)
    this.#weights = new Int8Weights(graph, plan, config.weights, this.#values, reads)
    this.#rows = new RowScales(plan, this.#values, this.#nodes)
    this.#steps = new Int8Nodes(graph, this.#values, this.#nodes, this.#propagation.traced)
  }

  run(): Graph {
    for (const name of [...this.#config.values, ...this.#config.dynamic]) {
      const id = this.#graph.inputs[name]
      if (id !== undefined) this.#input(name, id)
    }
    for (const node of this.#graph.nodes) {
      if (node.kind === 'matmul' && this.#propagation.integer.has(node)) this.#matmul(node)
      else if (node.kind === 'matmul' && this.#weightOnly.has(node)) this.#scaled(node)
      else if (node.kind === 'view') this.#view(node)
      else if (node.kind === 'op' && outputsOf(node).some((id) => this.#propagation.traced.has(id))) this.#move(node)
      else this.#nodes.push(mapInputs(node, (id) => this.#floats.get(id) ?? id))
      for (const id of outputsOf(node)) {
        const name = this.#propagation.named.get(id)
        if (name !== undefined) this.#quantise(id, name)
      }
    }
    for (const [output, id] of Object.entries(this.#graph.outputs)) this.#result(output, id)
    const made = {
      ...this.#graph,
      values: this.#values,
      nodes: this.#nodes,
      inputs: this.#inputs,
      weights: this.#weights.weights,
      steps: this.#weights.steps,
      outputs: this.#outputs,
      int8: this.#forms,
      ...this.#steps.scales(),
    }
    // A value stored as int8 may have no float reader.
    return prune(made, (node) => node.kind === 'view' || isNodeOf(dequantize, node))
  }

  #input(name: string, id: ValueId): void {
    const value = valueAt(this.#values, id)
    if (this.#config.only.includes(name)) {
      this.#values[id] = { ...value, dtype: 'i8' }
      this.#int8.set(id, id)
      this.#floats.set(id, this.#dequantise(id, value.dtype, name))
    } else if (this.#config.across.includes(name)) {
      const given = pushValue(this.#values, { ...value, dtype: 'i8' })
      this.#inputs[int8Name(name)] = given
      this.#forms.inputs[int8Name(name)] = name
      this.#int8.set(id, given)
    } else this.#quantise(id, name)
  }

  /** Makes the int8 form of a result an output, alone or in addition to the float one. */
  #result(output: string, id: ValueId): void {
    const name = this.#propagation.named.get(id)
    if (name === undefined) return
    const int8 = this.#int8.get(id) ?? id
    if (this.#config.only.includes(name)) this.#outputs[output] = int8
    else if (this.#config.across.includes(name)) {
      this.#outputs[int8Name(output)] = int8
      this.#forms.outputs[int8Name(output)] = output
    }
  }

  #quantise(id: ValueId, name: string): void {
    const { dtype, shape } = valueAt(this.#values, id)
    if (this.#config.dynamic.includes(name)) {
      const flat = this.#steps.matrixOf(id)
      const steps = pushValue(this.#values, { dtype: 'f32', shape: flat.slice(0, 1), layout: 'row' })
      const y = this.#steps.elementwise(id, int8Name(name), 'i8', (made, x, out) =>
        opNode(quantizeRows, made, { types: { T: dtype }, inputs: { x }, outputs: { y: out, steps }, attrs: {} }),
      )
      this.#int8.set(id, y)
      const axes = rowAxes(flat, 1, shape)
      if (axes !== undefined) {
        const own = reshape(this.#values, this.#nodes, steps, shape.slice(0, axes), scalesName(int8Name(name)))
        this.#rows.set(id, { axes, id: own })
      }
      return
    }
    const inverse = this.#steps.scale('inverse', name)
    const y = this.#steps.elementwise(id, int8Name(name), 'i8', (step, x, out) =>
      opNode(quantize, step, { types: { T: dtype }, inputs: { x }, outputs: { y: out }, attrs: { inverse } }),
    )
    this.#int8.set(id, y)
    if (this.#config.only.includes(name)) this.#floats.set(id, this.#dequantise(y, dtype, name))
  }

  #dequantise(int8: ValueId, dtype: DTypeRef, name: string): ValueId {
    const step = this.#steps.scale('step', name)
    return this.#steps.elementwise(int8, floatName(name), dtype, (made, x, y) =>
      opNode(dequantize, made, { types: { T: dtype }, inputs: { x }, outputs: { y }, attrs: { step } }),
    )
  }

  #view(node: NodeOf<'view'>): void {
    const seen = this.#steps.view({ ...node, input: this.#floats.get(node.input) ?? node.input })
    if (seen !== node.out) this.#floats.set(node.out, seen)
    if (!this.#propagation.traced.has(node.out)) return
    this.#rows.view(node)
    const out = pushValue(this.#values, { ...valueAt(this.#values, node.out), dtype: 'i8' })
    this.#int8.set(node.out, this.#steps.view({ ...node, name: int8Name(node.name), input: this.#formOf(node.input), out }))
  }

  #formOf(id: ValueId): ValueId {
    const form = this.#int8.get(id)
    if (form === undefined) throw new Error(`internal: value ${id} of ${this.#graph.name} has no int8 form`)
    return form
  }

  /** Makes a node that moves elements move int8. */
  #move(node: NodeOf<'op'>): void {
    const [out = -1] = outputsOf(node)
    const reader = this.#propagation.floatReader(out)
    if (reader !== undefined) {
      throw usageError('plan.quantised', `plan ${this.#plan}: ${node.name} moves int8, but ${reader} reads it as floats`, {
        hint: `quantise ${node.name} instead of its input`,
        about: { nodes: [node.name, reader] },
      })
    }
    this.#values[out] = { ...valueAt(this.#values, out), dtype: 'i8' }
    this.#int8.set(out, out)
    const move = this.#propagation.moveOf(node)
    if (move !== undefined) this.#rows.move(node, move.moved, move.kernel)
    this.#nodes.push({ ...mapInputs(node, (id) => this.#int8.get(id) ?? id), types: { T: 'i8' } } as GraphNode)
  }

  #matmul(node: NodeOf<'matmul'>): void {
    const { name, a, b, out } = node
    const [first, second] = [a, b].flatMap((id) => this.#propagation.sourceOf(id) ?? [])
    const weight = this.#propagation.weightName(b)
    if (first === undefined || (weight === undefined) !== (second !== undefined))
      throw this.#refuse(name, `matmul ${name} has a weight as its first operand`)
    const dynamic = [first, second].filter((source) => source !== undefined && this.#config.dynamic.includes(source))
    if (weight === undefined && dynamic.length > 0)
      throw this.#refuse(
        name,
        `${name} multiplies two activations, and rows of ${dynamic.join(' and ')} have scales of their own`,
      )
    const float = valueAt(this.#values, out)
    const types = { T: float.dtype }
    const product = pushValue(this.#values, { ...float, dtype: 'i32' })
    const multiply = (right: ValueId): void => {
      this.#nodes.push({ ...node, a: this.#formOf(a), b: right, out: product })
    }
    const back = (make: (made: string, x: ValueId, y: ValueId) => GraphNode) =>
      this.#steps.elementwise(product, floatName(name), float.dtype, make, out)
    if (weight !== undefined && dynamic.length > 0) {
      const channels = this.#weights.take(node, weight)
      const steps = this.#stepsOfRows(node)
      multiply(b)
      back((made, x, y) => opNode(dequantizeRows, made, { types, inputs: { x, steps, channels }, outputs: { y }, attrs: {} }))
    } else if (weight !== undefined) {
      const steps = this.#weights.take(node, weight, this.#steps.scale('step', first).attr)
      multiply(b)
      back((made, x, y) => opNode(dequantizeChannels, made, { types, inputs: { x, steps }, outputs: { y }, attrs: {} }))
    } else if (second !== undefined) {
      const attrs = { step: this.#steps.scale('step', first), otherStep: this.#steps.scale('step', second) }
      multiply(this.#formOf(b))
      back((made, x, y) => opNode(dequantizeProduct, made, { types, inputs: { x }, outputs: { y }, attrs }))
    }
  }

  /** Scales of the rows of a matmul's first operand, which are the rows of its result. */
  #stepsOfRows({ name, a, subscripts }: NodeOf<'matmul'>): ValueId {
    const steps = this.#rows.of(a)
    const rows = subscripts.a.slice(0, steps?.axes ?? 0)
    const fits =
      rows.join() === subscripts.out.slice(0, -1).join() &&
      subscripts.a.slice(rows.length).every((axis) => !subscripts.out.includes(axis))
    if (steps !== undefined && fits) return this.#rows.flat(steps, floatName(name))
    const [left, out] = [subscripts.a, subscripts.out].map((axes) => axes.join(' '))
    const written = `"${left}" to "${out}"`
    throw this.#refuse(name, `${name} multiplies ${written}, and its rows are not those that have a scale each`)
  }

  /** Adds a matmul that reads its weight as int8 and the other operand unchanged. */
  #scaled(node: NodeOf<'matmul'>): void {
    const { name, a, b, out } = node
    const float = valueAt(this.#values, out)
    const steps = this.#weights.take(node, this.#propagation.weightName(b) ?? '')
    // Sums that are not yet scaled may exceed the range of half precision.
    const product = pushValue(this.#values, { ...float, dtype: 'f32' })
    this.#nodes.push({ ...node, a: this.#floats.get(a) ?? a, out: product })
    const types = { T: float.dtype }
    this.#steps.elementwise(
      product,
      floatName(name),
      float.dtype,
      (made, x, y) => opNode(scaleChannels, made, { types, inputs: { x, steps }, outputs: { y }, attrs: {} }),
      out,
    )
  }

  #refuse(node: string, reason: string): Error {
    return usageError('plan.quantised', `plan ${this.#plan}: ${reason}`, {
      hint: 'an integer matmul multiplies an activation by a weight, or activations that have a scale each',
      about: { nodes: [node] },
    })
  }
}
