/**
 * Stacks nodes that do the same to different weights. Matmuls of one input become one matmul whose weights lie one behind the
 * other, and each node a `take` of its part; ops on the parts of a stack become one op on the whole. Runs after packing and
 * before a plan groups nodes, so that a group can name the stack, the takes, or both.
 */
import { concerning, usageError } from '../../errors.js'
import type { Graph, GraphNode, GraphValue, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { type Extent, printShape } from '../../ir/shape.js'
import { isNodeOf, opNode } from '../../lang/op_node.js'
import type { PlanDecl } from '../../lang/plan.js'
import { stackedName } from '../../lang/step_names.js'
import { take } from '../../std/index.js'
import { isElementwise } from '../space/space.js'
import { findNode, prune, pushValue, valueAt } from './edit.js'

type Stack = NonNullable<PlanDecl['stacked']>[number]

/** The graph with the plan's stacks. @throws usage `plan.node`, and `plan.stack` naming the two nodes that differ and in what */
export function stackGraph(graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>): Graph {
  return (plan.stacked ?? []).reduce(
    (current, stack) => concerning({ path: [stack.name] }, () => new Stacker(current, plan.name, stack, ops).run()),
    graph,
  )
}

const refuse = (stack: Stack, first: string, second: string, reason: string) =>
  usageError('plan.stack', `stack ${stack.name}: nodes ${first} and ${second} cannot be stacked: ${reason}`, {
    hint: 'stack nodes that do the same to equally shaped weights',
    about: { nodes: [first, second] },
  })

class Stacker {
  readonly #graph: Graph
  readonly #plan: string
  readonly #stack: Stack
  readonly #ops: ReadonlyMap<string, Kernel>
  readonly #values: GraphValue[]
  readonly #weights: Record<string, ValueId>
  readonly #stacked: Record<string, readonly string[]>

  constructor(graph: Graph, plan: string, stack: Stack, ops: ReadonlyMap<string, Kernel>) {
    this.#graph = graph
    this.#plan = plan
    this.#stack = stack
    this.#ops = ops
    this.#values = [...graph.values]
    this.#weights = { ...graph.weights }
    this.#stacked = { ...graph.stacked }
  }

  run(): Graph {
    const members = this.#stack.nodes.map((name) => findNode(this.#graph, this.#plan, `stack ${this.#stack.name}`, name))
    const matmuls = members.filter((node) => node.kind === 'matmul')
    const applied = members.filter((node) => node.kind === 'op')
    const [first, second] = members
    if (first === undefined || second === undefined) {
      throw usageError('plan.stack', `stack ${this.#stack.name} has ${members.length} nodes, expected at least 2`)
    }
    if (matmuls.length > 0 && applied.length > 0)
      throw refuse(this.#stack, first.name, second.name, 'one is a matmul, one is not')
    const made = matmuls.length > 0 ? this.#matmuls(matmuls) : this.#elementwise(applied)
    const stacked = new Set<GraphNode>(members)
    const at = this.#graph.nodes.findIndex((node) => stacked.has(node))
    const kept = (nodes: readonly GraphNode[]) => nodes.filter((node) => !stacked.has(node))
    const nodes = [...kept(this.#graph.nodes.slice(0, at)), ...made, ...kept(this.#graph.nodes.slice(at))]
    const whole = { ...this.#graph, values: this.#values, weights: this.#weights, stacked: this.#stacked, nodes }
    return prune(whole, (node) => node.kind === 'view' || isNodeOf(take, node))
  }

  /** `m k, n k -> m n` for each becomes one product with `parts*n` columns. */
  #matmuls(nodes: readonly NodeOf<'matmul'>[]): GraphNode[] {
    const [first, ...rest] = nodes
    if (first === undefined) return []
    for (const node of rest) {
      if (node.a !== first.a) throw refuse(this.#stack, first.name, node.name, 'they multiply different inputs')
      if (JSON.stringify(node.subscripts) !== JSON.stringify(first.subscripts))
        throw refuse(this.#stack, first.name, node.name, 'their subscripts differ')
    }
    const [m, k] = first.subscripts.a
    const [n] = first.subscripts.b
    const plain = { a: [m, k], b: [n, k], out: [m, n] }
    if (JSON.stringify(plain) !== JSON.stringify(first.subscripts)) {
      throw refuse(this.#stack, first.name, first.name, 'only products "m k, n k -> m n" stack')
    }
    const b = this.#weight(
      stackedName(this.#stack.name),
      nodes.map((node) => [node.name, node.b] as const),
    )
    const [rows, columns] = valueAt(this.#values, first.out).shape
    if (rows === undefined || columns === undefined) throw new Error('internal: a matmul result without two axes')
    const out = pushValue(this.#values, { ...valueAt(this.#values, first.out), shape: [rows, this.#times(columns)] })
    const whole: GraphNode = { ...first, name: this.#stack.name, b, out }
    return [
      whole,
      ...this.#takes(
        out,
        rows,
        columns,
        nodes.map(({ name, out: part }) => [name, part] as const),
      ),
    ]
  }

  /** An elementwise op over `m n` with weights over `n` becomes one over `m parts*n`. */
  #elementwise(nodes: readonly NodeOf<'op'>[]): GraphNode[] {
    const [first, ...rest] = nodes
    if (first === undefined) return []
    for (const node of rest) {
      if (node.op !== first.op || JSON.stringify(node.attrs) !== JSON.stringify(first.attrs))
        throw refuse(this.#stack, first.name, node.name, 'they apply different ops or attributes')
    }
    const kernel = this.#ops.get(first.op)
    const outputs = kernel?.tensors.filter(({ access }) => access === 'out') ?? []
    const [output] = outputs
    if (
      kernel === undefined ||
      output === undefined ||
      outputs.length > 1 ||
      output.dims.length !== 2 ||
      !isElementwise(kernel)
    ) {
      throw refuse(this.#stack, first.name, first.name, 'only elementwise ops with one result "m n" stack')
    }
    const [rows, columns] = valueAt(this.#values, first.outputs[output.name] ?? 0).shape
    if (rows === undefined || columns === undefined) throw new Error('internal: a result without two axes')
    const inputs = kernel.tensors.filter(({ access }) => access === 'in')
    const bound = inputs.map(({ name, dims }) => {
      const ids = nodes.map((node) => [node.name, node.inputs[name] ?? 0] as const)
      return [
        name,
        dims.length === 1 ? this.#weight(stackedName(this.#stack.name, name), ids) : this.#wholeOf(ids, rows, columns),
      ] as const
    })
    const y = pushValue(this.#values, {
      ...valueAt(this.#values, first.outputs[output.name] ?? 0),
      shape: [rows, this.#times(columns)],
    })
    const parts = nodes.map((node) => [node.name, node.outputs[output.name] ?? 0] as const)
    const whole: GraphNode = {
      ...first,
      name: this.#stack.name,
      inputs: Object.fromEntries(bound),
      outputs: { [output.name]: y },
    }
    return [whole, ...this.#takes(y, rows, columns, parts)]
  }

  /** The stack whose parts, in order, the given values are. */
  #wholeOf(parts: readonly (readonly [node: string, value: ValueId])[], rows: Extent, columns: Extent): ValueId {
    const takes = parts.map(([name, value], part) => {
      const taken = this.#graph.nodes.flatMap((node) => (isNodeOf(take, node) && node.outputs.y === value ? [node] : []))[0]
      if (taken === undefined || taken.attrs.part !== part)
        throw refuse(
          this.#stack,
          parts[0]?.[0] ?? '',
          parts[Math.max(part, 1)]?.[0] ?? name,
          'they do not read the parts of a stack in its order',
        )
      return taken.inputs.x
    })
    const view = this.#graph.nodes.find((node) => node.kind === 'view' && node.out === takes[0])
    const whole = view?.kind === 'view' ? view.input : undefined
    const wanted = printShape([rows, this.#times(columns)])
    if (whole === undefined || takes.some((x) => x !== takes[0]) || printShape(valueAt(this.#values, whole).shape) !== wanted)
      throw refuse(this.#stack, parts[0]?.[0] ?? '', parts[1]?.[0] ?? '', 'they do not read all parts of one stack')
    return whole
  }

  /** A weight that is others laid one behind the other along their first axis. */
  #weight(name: string, parts: readonly (readonly [node: string, value: ValueId])[]): ValueId {
    const names = parts.map(([node, id]) => {
      const weight = Object.entries(this.#graph.weights).find(([, value]) => value === id)?.[0]
      if (weight === undefined || this.#stacked[weight] !== undefined)
        throw refuse(this.#stack, parts[0]?.[0] ?? node, node, 'one of their operands is neither a weight nor part of a stack')
      return weight
    })
    const shapes = parts.map(([, id]) => printShape(valueAt(this.#values, id).shape))
    const other = shapes.findIndex((shape) => shape !== shapes[0])
    if (other >= 0) throw refuse(this.#stack, parts[0]?.[0] ?? '', parts[other]?.[0] ?? '', 'their weights have different shapes')
    const like = valueAt(this.#values, parts[0]?.[1] ?? 0)
    const [first, ...rest] = like.shape
    if (first === undefined) throw refuse(this.#stack, parts[0]?.[0] ?? '', parts[1]?.[0] ?? '', 'a scalar weight does not stack')
    const id = pushValue(this.#values, { ...like, shape: [this.#times(first), ...rest] })
    this.#weights[name] = id
    this.#stacked[name] = names
    for (const part of names) delete this.#weights[part]
    return id
  }

  #takes(whole: ValueId, rows: Extent, columns: Extent, parts: readonly (readonly [string, ValueId])[]): GraphNode[] {
    const value = valueAt(this.#values, whole)
    const sides = pushValue(this.#values, { ...value, shape: [rows, { factor: parts.length, dims: [] }, columns] })
    const view: GraphNode = { kind: 'view', name: `${this.#stack.name}.parts`, input: whole, out: sides }
    const takes = parts.map(([name, y], part) =>
      opNode(take, name, { types: { T: value.dtype }, inputs: { x: sides }, outputs: { y }, attrs: { part } }),
    )
    return [view, ...takes]
  }

  #times(extent: Extent): Extent {
    return { ...extent, factor: extent.factor * this.#stack.nodes.length }
  }
}
