/**
 * Stacks nodes that apply the same computation to different weights. Matmuls of one input become one matmul with concatenated weights, and each node
 * takes its part of the result; ops on the parts of a stack become one op on the whole. Parts may have different numbers of columns, as queries and
 * the keys that several of them share do. Runs after packing and before a plan groups nodes, so that a group can name the stack, its parts, or both.
 */
import { concerning, usageError } from '../../errors.js'
import type { AttrValue, Graph, GraphNode, GraphValue, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { commonExtent, divideExtent, type Extent, printExtent, printShape, sameExtent, sumExtents } from '../../ir/shape.js'
import { stackedName } from '../../lang/node_names.js'
import { isNodeOf, opNode } from '../../lang/op_node.js'
import type { PlanDecl } from '../../lang/plan.js'
import { take, takeRange } from '../../std/index.js'
import { isElementwise } from '../space/space.js'
import { findNode, prune, pushValue, valueAt } from './edit.js'
import { joinViews } from './views.js'

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
    hint: 'stack nodes that do the same to weights with rows of one length',
    about: { nodes: [first, second] },
  })

/** A node's part of a stack: its result, and the number of columns of that. */
interface Part {
  readonly node: string
  readonly value: ValueId
  readonly columns: Extent
}

const printProduct = ({ subscripts: { a, b, out } }: NodeOf<'matmul'>): string =>
  `${a.join(' ')}, ${b.join(' ')} -> ${out.join(' ')}`

/** A matmul's subscripts without their letters: every axis is the number of the first place that names it. */
function formOf({ subscripts: { a, b, out } }: NodeOf<'matmul'>): string {
  const axes = [...new Set([...a, ...b, ...out])]
  return [a, b, out].map((names) => names.map((name) => axes.indexOf(name)).join(' ')).join(', ')
}

/** The form of `m k, n k -> m n`. */
const stacking = '0 1, 2 1, 0 2'

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
    const unstacked = (nodes: readonly GraphNode[]) => nodes.filter((node) => !stacked.has(node))
    const nodes = [...unstacked(this.#graph.nodes.slice(0, at)), ...made, ...unstacked(this.#graph.nodes.slice(at))]
    const whole = { ...this.#graph, values: this.#values, weights: this.#weights, stacked: this.#stacked, nodes }
    return prune(joinViews(whole), (node) => node.kind === 'view' || isNodeOf(take, node) || isNodeOf(takeRange, node))
  }

  /** Merges matmuls `m k, n k -> m n` into one with the columns of all. */
  #matmuls(nodes: readonly NodeOf<'matmul'>[]): GraphNode[] {
    const [first, ...rest] = nodes
    if (first === undefined) return []
    for (const node of rest) {
      if (node.a !== first.a) throw refuse(this.#stack, first.name, node.name, 'they multiply different inputs')
      if (formOf(node) !== formOf(first)) {
        const written = [first, node].map((each) => `"${printProduct(each)}"`).join(' and ')
        throw refuse(this.#stack, first.name, node.name, `their subscripts differ, ${written}`)
      }
    }
    if (formOf(first) !== stacking)
      throw refuse(this.#stack, first.name, first.name, `only matmuls "m k, n k -> m n" stack, got "${printProduct(first)}"`)
    const b = this.#weight(
      stackedName(this.#stack.name),
      nodes.map((node) => [node.name, node.b] as const),
    )
    const { rows, parts } = this.#partsOf(nodes.map(({ name, out }) => [name, out] as const))
    const out = pushValue(this.#values, { ...valueAt(this.#values, first.out), shape: [rows, columnsOf(parts)] })
    return [{ ...first, name: this.#stack.name, b, out }, ...this.#takes(out, rows, parts)]
  }

  /** Merges elementwise ops over `m n` with weights over `n` into one over the columns of all. */
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
    const { rows, parts } = this.#partsOf(nodes.map(({ name, outputs: made }) => [name, made[output.name] ?? 0] as const))
    const inputs = kernel.tensors.filter(({ access }) => access === 'in')
    const bound = inputs.map(({ name, dims }) => {
      const ids = nodes.map((node) => [node.name, node.inputs[name] ?? 0] as const)
      return [
        name,
        dims.length === 1 ? this.#weight(stackedName(this.#stack.name, name), ids) : this.#wholeOf(ids, rows, parts),
      ] as const
    })
    const y = pushValue(this.#values, {
      ...valueAt(this.#values, first.outputs[output.name] ?? 0),
      shape: [rows, columnsOf(parts)],
    })
    const whole: GraphNode = {
      ...first,
      name: this.#stack.name,
      inputs: Object.fromEntries(bound),
      outputs: { [output.name]: y },
    }
    return [whole, ...this.#takes(y, rows, parts)]
  }

  /** Parts of nodes: results with equal rows, and columns of their own. */
  #partsOf(results: readonly (readonly [node: string, value: ValueId])[]): { readonly rows: Extent; readonly parts: Part[] } {
    const parts = results.map(([node, value]) => ({ node, value, shape: valueAt(this.#values, value).shape }))
    const [first] = parts
    const rows = first?.shape[0]
    if (first === undefined || rows === undefined) throw new Error('internal: a result without rows')
    return {
      rows,
      parts: parts.map(({ node, value, shape: [m, columns] }) => {
        if (m === undefined || columns === undefined) throw new Error('internal: a result without two axes')
        if (!sameExtent(m, rows)) throw refuse(this.#stack, first.node, node, 'their results have different rows')
        return { node, value, columns }
      }),
    }
  }

  /** The stack whose parts, in order, are the given values. */
  #wholeOf(values: readonly (readonly [node: string, value: ValueId])[], rows: Extent, parts: readonly Part[]): ValueId {
    const sources = values.map(([name, value], part) => {
      const taken = this.#takenFrom(value)
      if (taken === undefined || JSON.stringify(taken.place) !== JSON.stringify(placeOf(parts, part)))
        throw refuse(
          this.#stack,
          values[0]?.[0] ?? '',
          values[Math.max(part, 1)]?.[0] ?? name,
          'they do not read the parts of a stack in its order',
        )
      return taken.x
    })
    const view = this.#graph.nodes.find((node) => node.kind === 'view' && node.out === sources[0])
    const whole = view?.kind === 'view' ? view.input : undefined
    const wanted = printShape([rows, columnsOf(parts)])
    if (whole === undefined || sources.some((x) => x !== sources[0]) || printShape(valueAt(this.#values, whole).shape) !== wanted)
      throw refuse(this.#stack, values[0]?.[0] ?? '', values[1]?.[0] ?? '', 'they do not read all parts of one stack')
    return whole
  }

  /** The stack that a value is part of, and its position in it. */
  #takenFrom(value: ValueId): { readonly x: ValueId; readonly place: Place } | undefined {
    const { nodes } = this.#graph
    const shown = nodes.find((node) => node.kind === 'view' && node.out === value)
    for (const node of nodes) {
      if (isNodeOf(take, node) && node.outputs.y === value)
        return { x: node.inputs.x, place: { alike: true, at: node.attrs.part ?? 0 } }
      if (isNodeOf(takeRange, node) && shown?.kind === 'view' && node.outputs.y === shown.input)
        return { x: node.inputs.x, place: { alike: false, at: node.attrs.first ?? 0 } }
    }
    return undefined
  }

  /** Concatenates weights along their first axis. */
  #weight(name: string, parts: readonly (readonly [node: string, value: ValueId])[]): ValueId {
    const names = parts.map(([node, id]) => {
      const weight = Object.entries(this.#graph.weights).find(([, value]) => value === id)?.[0]
      if (weight === undefined || this.#stacked[weight] !== undefined)
        throw refuse(this.#stack, parts[0]?.[0] ?? node, node, 'one of their operands is neither a weight nor part of a stack')
      return weight
    })
    const shapes = parts.map(([, id]) => valueAt(this.#values, id).shape)
    const rest = shapes.map((shape) => printShape(shape.slice(1)))
    const other = rest.findIndex((shape) => shape !== rest[0])
    if (other >= 0)
      throw refuse(this.#stack, parts[0]?.[0] ?? '', parts[other]?.[0] ?? '', 'rows of their weights have different shapes')
    const like = valueAt(this.#values, parts[0]?.[1] ?? 0)
    const rows = sumExtents(shapes.flatMap(([extent]) => extent ?? []))
    const id = pushValue(this.#values, { ...like, shape: [rows, ...like.shape.slice(1)] })
    this.#weights[name] = id
    this.#stacked[name] = names
    for (const part of names) delete this.#weights[part]
    return id
  }

  /** Takes each part of the whole as its node's result. */
  #takes(whole: ValueId, rows: Extent, parts: readonly Part[]): GraphNode[] {
    const value = valueAt(this.#values, whole)
    const { vectors, length } = sidesOf(parts)
    const beside = areAlike(parts) ? { factor: parts.length, dims: [] } : sumExtents(vectors)
    const sides = pushValue(this.#values, { ...value, shape: [rows, beside, length] })
    const view: GraphNode = { kind: 'view', name: `${this.#stack.name}.parts`, input: whole, out: sides }
    const types = { T: value.dtype }
    const takes = parts.flatMap(({ node, value: y }, i): GraphNode[] => {
      const { alike, at } = placeOf(parts, i)
      if (alike) return [opNode(take, node, { types, inputs: { x: sides }, outputs: { y }, attrs: { part: at } })]
      const taken = pushValue(this.#values, { ...value, shape: [rows, vectors[i] ?? length, length] })
      return [
        opNode(takeRange, node, { types, inputs: { x: sides }, outputs: { y: taken }, attrs: { first: at } }),
        { kind: 'view', name: `${node}.columns`, input: taken, out: y },
      ]
    })
    return [view, ...takes]
  }
}

/** Position of a part in a stack: its number if parts have equal sizes, else its first vector. */
interface Place {
  readonly alike: boolean
  readonly at: AttrValue
}

const columnsOf = (parts: readonly Part[]): Extent => sumExtents(parts.map(({ columns }) => columns))

/** Columns of parts as vectors of one length, the longest that divides the columns of every part. */
function sidesOf(parts: readonly Part[]): { readonly vectors: readonly Extent[]; readonly length: Extent } {
  const length = commonExtent(parts.map(({ columns }) => columns))
  return { length, vectors: parts.map(({ columns }) => divideExtent(columns, length)) }
}

/** True if all parts have the same number of columns. */
const areAlike = (parts: readonly Part[]): boolean =>
  sidesOf(parts).vectors.every(({ factor, dims }) => factor === 1 && dims.length === 0)

function placeOf(parts: readonly Part[], at: number): Place {
  if (areAlike(parts)) return { alike: true, at }
  if (at === 0) return { alike: false, at: 0 }
  const before = sumExtents(sidesOf(parts).vectors.slice(0, at))
  const [only, ...more] = before.dims
  if (only === undefined) return { alike: false, at: before.factor }
  const isDim = before.factor === 1 && more.length === 0
  return { alike: false, at: { dim: isDim ? only : `(${printExtent(before)})` } }
}
