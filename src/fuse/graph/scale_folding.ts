/**
 * Scale foldings: values read by matmuls whose channels weights alone can scale. When rows are quantised, channels far larger than others cost all
 * others their precision. A factor that divides such a channel where it is computed, and multiplies the weights that read it, moves the cost into the
 * weights (Xiao et al. 2023); nothing else is computed. Derived for the values whose rows a plan quantises: a factor is followed back through
 * matmuls, views and bodies (scaled_bodies.ts) until weights take it.
 */
import { call, dim, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import {
  foldChannel,
  type Graph,
  type GraphNode,
  inputsOf,
  type NodeOf,
  outputsOf,
  type ScaleFolding,
  type ValueId,
} from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { multiplyExtents, type Shape } from '../../ir/shape.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { withoutSpans } from '../../ir/walk.js'
import { aliasesOf, runsBetween, valueAt } from './edit.js'
import { type At, scaledInputs } from './scaled_bodies.js'

type Makers = ScaleFolding['makers']

/**
 * The scale foldings of a graph as its author wrote it.
 * @param names nodes whose rows are quantised; those that no weight can scale, or that have another reader, have no folding
 * @param ops kernels of the graph's ops, by name
 */
export const scaleFoldingsOf = (graph: Graph, names: readonly string[], ops: ReadonlyMap<string, Kernel>): ScaleFolding[] =>
  names.flatMap((name) => {
    const node = graph.nodes.find((each) => each.name === name)
    const [id] = node === undefined ? [] : outputsOf(node)
    return id === undefined ? [] : (new Folding(graph, ops).folding(name, id) ?? [])
  })

class Folding {
  readonly #graph: Graph
  readonly #ops: ReadonlyMap<string, Kernel>

  constructor(graph: Graph, ops: ReadonlyMap<string, Kernel>) {
    this.#graph = graph
    this.#ops = ops
  }

  folding(name: string, id: ValueId): ScaleFolding | undefined {
    const aliases = aliasesOf(this.#graph.nodes, id)
    const products = [...aliases].flatMap((alias) => this.#readersOf(alias)).filter(({ kind }) => kind !== 'view')
    const readers = products.map((node) => this.#reads(node))
    const [first] = products
    if (first?.kind !== 'matmul' || readers.includes(undefined)) return undefined
    const { a: read } = first
    if (products.some((node) => node.kind !== 'matmul' || node.a !== read) || this.#isOutput(read)) return undefined
    const { shape } = valueAt(this.#graph.values, read)
    const last = shape.length - 1
    const makers = this.#made(
      read,
      shape.map((_, axis) => (axis === last ? index(foldChannel) : undefined)),
    )
    if (makers === undefined || makers.length === 0) return undefined
    return {
      value: name,
      shape: [multiplyExtents(shape.slice(0, -1)), ...shape.slice(-1)],
      readers: readers.flatMap((r) => r ?? []),
      makers,
    }
  }

  /** The weight by which a matmul multiplies channels, the last axis of its first operand. */
  #reads(node: GraphNode): ScaleFolding['readers'][number] | undefined {
    if (node.kind !== 'matmul') return undefined
    const { subscripts } = node
    const channels = subscripts.a.at(-1) ?? ''
    const weight = this.#weightName(node.b)
    const axis = subscripts.b.indexOf(channels)
    if (weight === undefined || axis < 0 || subscripts.out.includes(channels) || this.#readersOf(node.b).length > 1)
      return undefined
    return { weight, axis }
  }

  /** Weights that scale a value at the given indices; undefined if there are none, or if another value would be scaled with them. */
  #made(id: ValueId, at: At): Makers | undefined {
    const weight = this.#weightName(id)
    if (weight !== undefined) return leaf(weight, at)
    const node = this.#graph.nodes.find((each) => outputsOf(each).includes(id))
    switch (node?.kind) {
      case 'view':
        return this.#view(node, at)
      case 'matmul':
        return this.#product(node, at)
      case 'op':
        return this.#op(node, id, at)
      default:
        return undefined
    }
  }

  /** Weights that scale an input of a node; undefined if it has another reader. */
  #source(id: ValueId, at: At | undefined): Makers | undefined {
    if (at === undefined || this.#readersOf(id).length > 1 || (this.#isOutput(id) && !this.#isUpdate(id))) return undefined
    return this.#made(id, at)
  }

  #view({ input, out }: NodeOf<'view'>, at: At): Makers | undefined {
    const [from, to] = [input, out].map((id) => valueAt(this.#graph.values, id).shape)
    return this.#source(input, reshaped(from ?? [], to ?? [], at))
  }

  #product({ a, b, subscripts }: NodeOf<'matmul'>, at: At): Makers | undefined {
    const bound = subscripts.out.filter((_, axis) => at[axis] !== undefined)
    if (a === b) return undefined
    // Weights first: a factor that they take is followed no further.
    const operands = [
      { id: b, axes: subscripts.b },
      { id: a, axes: subscripts.a },
    ].sort((one, other) => Number(this.#weightName(other.id) !== undefined) - Number(this.#weightName(one.id) !== undefined))
    for (const { id, axes } of operands) {
      if (!bound.every((axis) => axes.includes(axis))) continue
      const places = axes.map((axis) => at[subscripts.out.indexOf(axis)])
      const makers = this.#source(id, places)
      if (makers !== undefined) return makers
    }
    return undefined
  }

  #op(node: NodeOf<'op'>, id: ValueId, at: At): Makers | undefined {
    const kernel = this.#ops.get(node.op)
    const output = Object.keys(node.outputs).find((name) => node.outputs[name] === id)
    if (kernel === undefined || output === undefined) return undefined
    const updated = kernel.tensors.find(({ name }) => name === output)?.updates
    for (const inputs of scaledInputs(kernel, output, node.attrs, at)) {
      const makers = inputs.map(({ tensor, at: places }) => {
        const input = node.inputs[tensor] ?? -1
        if (Object.values(node.inputs).filter((other) => other === input).length > 1) return undefined
        const inputAt = inGraph(places, kernel, node, this.#graph)
        // The earlier contents were computed like the update, by the same weights.
        if (tensor === updated) return this.#isBuffered(input, inputAt, at) ? [] : undefined
        return this.#source(input, inputAt)
      })
      if (!makers.includes(undefined)) return makers.flatMap((each) => each ?? [])
    }
    return undefined
  }

  /** True if an input of the graph holds the earlier contents of an update: scaled at the same indices, and read by nothing else. */
  #isBuffered(id: ValueId, at: At, wanted: At): boolean {
    const isInput = Object.values(this.#graph.inputs).includes(id)
    return isInput && this.#readersOf(id).length === 1 && placesText(at) === placesText(wanted)
  }

  /** True if a value is the in-place update of a state. The owner of the state reads it through this graph alone. */
  #isUpdate(id: ValueId): boolean {
    const node = this.#graph.nodes.find((each) => outputsOf(each).includes(id))
    if (node?.kind !== 'op') return false
    const output = Object.keys(node.outputs).find((name) => node.outputs[name] === id)
    return this.#ops.get(node.op)?.tensors.find(({ name }) => name === output)?.updates !== undefined
  }

  readonly #isOutput = (id: ValueId): boolean => Object.values(this.#graph.outputs).includes(id)

  readonly #readersOf = (id: ValueId): readonly GraphNode[] => this.#graph.nodes.filter((node) => inputsOf(node).includes(id))

  readonly #weightName = (id: ValueId): string | undefined =>
    Object.keys(this.#graph.weights).find((name) => this.#graph.weights[name] === id)
}

/** A weight takes factors along exactly one axis. */
function leaf(weight: string, at: At): Makers | undefined {
  const axes = at.flatMap((element, axis) =>
    element === undefined ? [] : [{ weight, axis, element: withoutSpans(simplifyExpr(element)) }],
  )
  return axes.length === 1 ? axes : undefined
}

const placesText = (at: At): string => at.map((place) => (place === undefined ? '*' : printExpr(simplifyExpr(place)))).join(', ')

/** Replaces extents of a body by those of the graph around its node. */
function inGraph(at: At, kernel: Kernel, node: NodeOf<'op'>, graph: Graph): At {
  const extents = new Map<string, Expr>()
  for (const { name, dims } of kernel.tensors) {
    const id = node.inputs[name] ?? node.outputs[name]
    const shape = id === undefined ? [] : valueAt(graph.values, id).shape
    for (const [axis, extent] of shape.entries()) extents.set(dims[axis] ?? '', sizeOf([extent]))
  }
  return at.map((place) => (place === undefined ? undefined : withDims(place, extents)))
}

const withDims = (expr: Expr, extents: ReadonlyMap<string, Expr>): Expr => {
  if (expr.kind === 'dim') return extents.get(expr.name) ?? expr
  return expr.kind === 'call' ? { ...expr, args: expr.args.map((arg) => withDims(arg, extents)) } : expr
}

/** Number of elements of a shape. */
function sizeOf(shape: Shape): Expr {
  const { factor, dims } = multiplyExtents(shape)
  return simplifyExpr(dims.reduce((product, name) => call('mul', product, dim(name)), i32(factor)))
}

/** Converts indices into a shape to indices into another one of the same elements; undefined if a free axis and a fixed one would become one. */
function reshaped(from: Shape, to: Shape, at: At): At | undefined {
  const finer = runsBetween(from, to)
  const runs = finer ?? runsBetween(to, from)
  if (runs === undefined) return undefined
  const places: (Expr | undefined)[] = []
  let [first, next] = [0, 0]
  for (const run of runs) {
    const [ends, other] = finer === undefined ? [first + run, next + 1] : [first + 1, next + run]
    const part = regrouped(from.slice(first, ends), to.slice(next, other), at.slice(next, other))
    if (part === undefined) return undefined
    places.push(...part)
    first = ends
    next = other
  }
  return places
}

/** Converts indices along axes that have the same number of elements together. */
function regrouped(from: Shape, to: Shape, at: At): At | undefined {
  const known = at.flatMap((place) => place ?? [])
  if (known.length === 0) return from.map(() => undefined)
  if (known.length < at.length) return undefined
  const flat = known.reduce((sum, place, axis) => call('add', call('mul', sum, sizeOf(to.slice(axis, axis + 1))), place))
  return from.map((_, axis) => {
    const quotient = call('idiv', flat, sizeOf(from.slice(axis + 1)))
    return simplifyExpr(axis === 0 ? quotient : call('mod', quotient, sizeOf(from.slice(axis, axis + 1))))
  })
}
