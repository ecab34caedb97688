/**
 * Quantises a graph: the values a plan names get an int8 form, and matmuls that read nothing but such values and weights multiply
 * integers. What lies between a value and its matmul and only moves elements moves int8 instead. Runs after padding is removed and
 * nodes are stacked, before edges and groups, so that the steps it adds can be named by both.
 */
import { usageError } from '../../errors.js'
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
import type { DTypeRef, Kernel } from '../../ir/kernel.js'
import { multiplyExtents, printShape, type Shape } from '../../ir/shape.js'
import { isNodeOf, opNode } from '../../lang/op_node.js'
import type { PlanDecl, QuantisedDecl } from '../../lang/plan.js'
import { floatName, int8Name, inverseName, stepName, stepsName } from '../../lang/step_names.js'
import { dequantize, dequantizeChannels, dequantizeProduct, packRows, quantize } from '../../std/index.js'
import { mapInputs, prune, pushValue, reshape, valueAt } from './edit.js'
import { IntegerWays } from './integer_ways.js'

/** What calibration knows a node's result or an input as: packed rows are known as what they were packed from. */
function siteOf({ nodes }: Graph, name: string): string {
  const makerOf = (id: ValueId): GraphNode | undefined => {
    const found = nodes.find((node) => outputsOf(node).includes(id))
    return found?.kind === 'view' ? makerOf(found.input) : found
  }
  const node = nodes.find((candidate) => candidate.name === name)
  return node !== undefined && isNodeOf(packRows, node) ? (makerOf(node.inputs.x)?.name ?? name) : name
}

/**
 * @param ops kernels of the graph's ops, by name
 * @throws usage `plan.quantised` for a name the graph lacks or `values` does, and for a value that is both moved as int8 and read as floats
 */
export function quantiseGraph(graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>): Graph {
  return plan.quantised === undefined ? graph : new Quantiser(graph, plan.name, plan.quantised, ops).run()
}

class Quantiser {
  readonly #graph: Graph
  readonly #plan: string
  readonly #config: QuantisedDecl
  readonly #ways: IntegerWays
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[] = []
  readonly #inputs: Record<string, ValueId>
  readonly #weights: Record<string, ValueId>
  readonly #outputs: Record<string, ValueId>
  readonly #steps: Record<string, { readonly weight: string; readonly times: string }> = {}
  readonly #attrs: Set<string>
  readonly #forms: { readonly inputs: Record<string, string>; readonly outputs: Record<string, string> }
  readonly #scales: Record<string, Scale>
  /** Int8 forms by value. */
  readonly #int8 = new Map<ValueId, ValueId>()
  /** What float readers read instead of a value. */
  readonly #floats = new Map<ValueId, ValueId>()

  constructor(graph: Graph, plan: string, config: QuantisedDecl, ops: ReadonlyMap<string, Kernel>) {
    this.#graph = graph
    this.#plan = plan
    this.#config = config
    this.#values = [...graph.values]
    this.#inputs = { ...graph.inputs }
    this.#weights = { ...graph.weights }
    this.#outputs = { ...graph.outputs }
    this.#attrs = new Set(graph.attrs)
    this.#forms = { inputs: { ...graph.int8?.inputs }, outputs: { ...graph.int8?.outputs } }
    this.#scales = { ...graph.scales }
    this.#refuseUnquantised()
    this.#ways = new IntegerWays(graph, ops, new Map(config.values.map((name) => [this.#find(name), name])))
  }

  run(): Graph {
    for (const name of this.#config.values) {
      const id = this.#graph.inputs[name]
      if (id !== undefined) this.#input(name, id)
    }
    for (const node of this.#graph.nodes) {
      if (node.kind === 'matmul' && this.#ways.integer.has(node)) this.#matmul(node)
      else if (node.kind === 'view') this.#view(node)
      else if (node.kind === 'op' && outputsOf(node).some((id) => this.#ways.traced.has(id))) this.#move(node)
      else this.#nodes.push(mapInputs(node, (id) => this.#floats.get(id) ?? id))
      for (const id of outputsOf(node)) if (this.#ways.named.has(id)) this.#quantise(id, this.#ways.named.get(id) ?? '')
    }
    for (const [output, id] of Object.entries(this.#graph.outputs)) this.#result(output, id)
    const made = {
      ...this.#graph,
      values: this.#values,
      nodes: this.#nodes,
      inputs: this.#inputs,
      weights: this.#weights,
      steps: this.#steps,
      outputs: this.#outputs,
      attrs: [...this.#attrs],
      int8: this.#forms,
      scales: this.#scales,
    }
    // Not every value kept as int8 has a reader that needs floats.
    return prune(made, (node) => node.kind === 'view' || isNodeOf(dequantize, node))
  }

  /** What is kept or given as int8 has to be quantised. */
  #refuseUnquantised(): void {
    const { values, only, across } = this.#config
    const other = [...only, ...across].find((name) => !values.includes(name))
    if (other === undefined) return
    throw usageError('plan.quantised', `plan ${this.#plan}: ${other} is to be int8, but is not among the quantised values`, {
      hint: `quantised: ${values.join(', ')}`,
      about: { path: [only.includes(other) ? 'only' : 'across', other] },
    })
  }

  /** The value of a node or input. */
  #find(name: string): ValueId {
    const node = this.#graph.nodes.find((candidate) => candidate.name === name && candidate.kind !== 'view')
    const id = node === undefined ? this.#graph.inputs[name] : outputsOf(node)[0]
    if (id === undefined) {
      throw usageError('plan.quantised', `plan ${this.#plan}: ${this.#graph.name} has no node or input ${name} to quantise`, {
        hint: `nodes: ${this.#graph.nodes.flatMap((known) => (known.kind === 'view' ? [] : [known.name])).join(', ')}`,
        about: { path: [name] },
      })
    }
    return id
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

  /** What the graph returns of a result: its int8 form alone, or beside the float one. */
  #result(output: string, id: ValueId): void {
    const name = this.#ways.named.get(id)
    if (name === undefined) return
    const int8 = this.#int8.get(id) ?? id
    if (this.#config.only.includes(name)) this.#outputs[output] = int8
    else if (this.#config.across.includes(name)) {
      this.#outputs[int8Name(output)] = int8
      this.#forms.outputs[int8Name(output)] = output
    }
  }

  #quantise(id: ValueId, name: string): void {
    const { dtype } = valueAt(this.#values, id)
    const inverse = this.#scale('inverse', name)
    const y = this.#elementwise(id, int8Name(name), 'i8', (step, x, out) =>
      opNode(quantize, step, { types: { T: dtype }, inputs: { x }, outputs: { y: out }, attrs: { inverse } }),
    )
    this.#int8.set(id, y)
    if (this.#config.only.includes(name)) this.#floats.set(id, this.#dequantise(y, dtype, name))
  }

  #dequantise(int8: ValueId, dtype: DTypeRef, name: string): ValueId {
    const step = this.#scale('step', name)
    return this.#elementwise(int8, floatName(name), dtype, (made, x, y) =>
      opNode(dequantize, made, { types: { T: dtype }, inputs: { x }, outputs: { y }, attrs: { step } }),
    )
  }

  /** The attribute that is a scale of a quantised value, by what calibration knows the value as. */
  #scale(as: ScaleForm, name: string): { readonly attr: string } {
    const site = siteOf(this.#graph, name)
    const attr = as === 'inverse' ? inverseName(site) : stepName(site)
    this.#attrs.add(attr)
    this.#scales[attr] = { site, as }
    return { attr }
  }

  /** Applies an op of `m n` matrices, as `make` says, to a value of any rank; the result has the value's shape and layout. */
  #elementwise(
    id: ValueId,
    name: string,
    result: DTypeRef,
    make: (name: string, x: ValueId, y: ValueId) => GraphNode,
    given?: ValueId,
  ): ValueId {
    const { shape, layout } = valueAt(this.#values, id)
    const flat = this.#matrixOf(id)
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
  #matrixOf(id: ValueId): Shape {
    const { shape } = valueAt(this.#values, id)
    if (shape.length === 2) return shape
    const seen = this.#graph.nodes.flatMap((node) =>
      node.kind === 'view' && node.input === id && this.#ways.traced.has(node.out) ? [valueAt(this.#values, node.out).shape] : [],
    )
    return seen.find(({ length }) => length === 2) ?? [multiplyExtents(shape.slice(0, -1)), ...shape.slice(-1)]
  }

  #view(node: NodeOf<'view'>): void {
    const seen = this.#pushView({ ...node, input: this.#floats.get(node.input) ?? node.input })
    if (seen !== node.out) this.#floats.set(node.out, seen)
    if (!this.#ways.traced.has(node.out)) return
    const out = pushValue(this.#values, { ...valueAt(this.#values, node.out), dtype: 'i8' })
    this.#int8.set(node.out, this.#pushView({ ...node, name: int8Name(node.name), input: this.#formOf(node.input), out }))
  }

  /** Adds a view of what the viewed value is itself a view of, unless that has the wanted shape already. */
  #pushView(node: NodeOf<'view'>): ValueId {
    const through = this.#nodes.find((other) => other.kind === 'view' && other.out === node.input)
    const input = through?.kind === 'view' ? through.input : node.input
    const shapes = [input, node.out].map((id) => printShape(valueAt(this.#values, id).shape))
    if (through !== undefined && shapes[0] === shapes[1]) return input
    this.#nodes.push({ ...node, input })
    return node.out
  }

  #formOf(id: ValueId): ValueId {
    const form = this.#int8.get(id)
    if (form === undefined) throw new Error(`internal: value ${id} of ${this.#graph.name} has no int8 form`)
    return form
  }

  /** A node that moves elements moves int8. */
  #move(node: NodeOf<'op'>): void {
    const [out = -1] = outputsOf(node)
    const reader = this.#ways.floatReader(out)
    if (reader !== undefined) {
      throw usageError('plan.quantised', `plan ${this.#plan}: ${node.name} moves int8, but ${reader} reads it as floats`, {
        hint: `quantise ${node.name} instead of what it moves`,
        about: { nodes: [node.name, reader] },
      })
    }
    this.#values[out] = { ...valueAt(this.#values, out), dtype: 'i8' }
    this.#int8.set(out, out)
    this.#nodes.push({ ...mapInputs(node, (id) => this.#int8.get(id) ?? id), types: { T: 'i8' } } as GraphNode)
  }

  #matmul(node: NodeOf<'matmul'>): void {
    const { name, a, b, out } = node
    const float = valueAt(this.#values, out)
    const product = pushValue(this.#values, { ...float, dtype: 'i32' })
    const operand = (id: ValueId): ValueId => (this.#ways.weightName(id) === undefined ? this.#formOf(id) : this.#weight(id))
    this.#nodes.push({ ...node, a: operand(a), b: operand(b), out: product })
    const [first, second] = [a, b].flatMap((id) => this.#ways.sourceOf(id) ?? [])
    const weight = this.#ways.weightName(b)
    if (first === undefined || (weight === undefined) !== (second !== undefined)) {
      throw usageError('plan.quantised', `plan ${this.#plan}: matmul ${name} has a weight as its first operand`, {
        hint: 'an integer matmul multiplies an activation by a weight or by another activation',
        about: { nodes: [name] },
      })
    }
    const types = { T: float.dtype }
    const back = (make: (made: string, x: ValueId, y: ValueId) => GraphNode) =>
      this.#elementwise(product, floatName(name), float.dtype, make, out)
    if (weight !== undefined) {
      const steps = this.#stepsOf(weight, name, first)
      back((made, x, y) => opNode(dequantizeChannels, made, { types, inputs: { x, steps }, outputs: { y }, attrs: {} }))
    } else if (second !== undefined) {
      const attrs = { step: this.#scale('step', first), otherStep: this.#scale('step', second) }
      back((made, x, y) => opNode(dequantizeProduct, made, { types, inputs: { x }, outputs: { y }, attrs }))
    }
  }

  /** A weight becomes int8, in the plan's layout. */
  #weight(id: ValueId): ValueId {
    this.#values[id] = { ...valueAt(this.#values, id), dtype: 'i8', layout: this.#config.weights }
    return id
  }

  /** The steps of a weight's rows times that of an activation: a weight of its own. */
  #stepsOf(weight: string, matmul: string, source: string): ValueId {
    const name = stepsName(weight)
    const { attr: times } = this.#scale('step', source)
    const known = this.#steps[name]
    if (known !== undefined && known.times !== times) {
      throw usageError(
        'plan.quantised',
        `plan ${this.#plan}: ${matmul} multiplies ${weight} by a value of another scale than before`,
        {
          hint: 'multiply a weight by one quantised value only',
        },
      )
    }
    const made = this.#weights[name]
    if (made !== undefined) return made
    const rows = valueAt(this.#values, this.#weights[weight] ?? -1).shape.slice(0, 1)
    const id = pushValue(this.#values, { dtype: 'f32', shape: rows, layout: 'row' })
    this.#weights[name] = id
    this.#steps[name] = { weight, times }
    return id
  }
}
