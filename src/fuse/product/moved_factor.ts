/**
 * Library matmuls with a factor that an op of the group moves: each element of the op's result is an element of its input, at an index that
 * follows from the result's indices alone. Consecutive indices along an axis may read one element, as heads of queries share a head of keys. Such
 * an axis is split in two, of which the input has the outer one. Strides then express the move, and no data is moved.
 */
import { call, dim, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, GraphNode, GraphValue, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { divideInto, type Extent } from '../../ir/shape.js'
import { pushValue, valueAt } from '../graph/edit.js'
import { isUsed } from '../space/members.js'
import { equalExprs } from '../space/positions.js'

/** Replacement of a group: nodes, and values of which the new ones come last. */
export interface Instead {
  readonly values: readonly GraphValue[]
  readonly nodes: readonly GraphNode[]
  readonly out: ValueId
}

/** Source of a result's element: for each axis of the input, the index of the result's axis along it. */
interface Move {
  readonly node: NodeOf<'op'>
  readonly input: ValueId
  readonly axes: readonly { readonly of: number; readonly isShared: boolean }[]
}

/**
 * The matmul of a group whose other nodes each move one of its factors; undefined if they do not, or if their results are needed outside.
 * @param nodes of the group
 * @param given values of the graph as planned so far
 * @param kernels of its ops
 */
export function movedProduct(
  graph: Graph,
  nodes: readonly GraphNode[],
  given: readonly GraphValue[],
  kernels: ReadonlyMap<string, Kernel>,
): Instead | undefined {
  const [product, another] = nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const ops = nodes.flatMap((node) => (node.kind === 'op' ? [node] : []))
  if (product === undefined || another !== undefined || ops.length === 0) return undefined
  const moves = ops.flatMap((node) => moveOf(node, kernels.get(node.op)) ?? [])
  const feeds = moves.every(({ node }) => Object.values(node.outputs).some((id) => id === product.a || id === product.b))
  const inside = new Set(nodes)
  const isNeeded = moves.some(({ node }) => Object.values(node.outputs).some((id) => isUsed(graph, id, inside)))
  if (moves.length < ops.length || !feeds || isNeeded || product.epilogue !== undefined) return undefined
  const values = [...given]
  const split = new Splits(product, values)
  for (const move of moves) if (!split.read(move)) return undefined
  return split.finish()
}

/** The move that an op performs; undefined for an op that computes, or whose indices are read from a tensor. */
function moveOf(node: NodeOf<'op'>, kernel: Kernel | undefined): Move | undefined {
  const [only, ...others] = kernel?.body ?? []
  if (kernel === undefined || only === undefined || others.length > 0) return undefined
  const [source, another] = kernel.tensors.filter(({ access }) => access === 'in')
  const stored = kernel.tensors.find((tensor) => 'tensor' in only && tensor.name === only.tensor)
  if (source === undefined || another !== undefined || stored === undefined || stored.updates !== undefined) return undefined
  if ((only.kind !== 'store' && only.kind !== 'storeRow') || only.when !== undefined || only.value.kind !== 'load')
    return undefined
  const places = only.kind === 'store' ? only.indices : [...only.rows, index(only.index)]
  if (only.kind === 'storeRow' && !equalExprs(only.length, dim(stored.dims.at(-1) ?? ''))) return undefined
  const axes = only.value.indices.map((from, at) => axisOf(from, source.dims[at] ?? '', places, stored.dims))
  const found = axes.flatMap((axis) => axis ?? [])
  const input = node.inputs[source.name]
  const isWhole = new Set(found.map(({ of }) => of)).size === places.length && found.length === places.length
  return isWhole && found.length === axes.length && input !== undefined ? { node, input, axes: found } : undefined
}

/** The axis of a result that an index of its input runs along. */
function axisOf(from: Expr, own: string, places: readonly Expr[], dims: readonly string[]): Move['axes'][number] | undefined {
  for (const [of, place] of places.entries()) {
    const extent = dims[of] ?? ''
    if (extent === own && equalExprs(from, place)) return { of, isShared: false }
    const share = call('idiv', place, call('idiv', dim(extent), dim(own)))
    if (extent !== own && equalExprs(from, share)) return { of, isShared: true }
  }
  return undefined
}

/** A matmul with some of its axes split. */
class Splits {
  readonly #product: NodeOf<'matmul'>
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[] = []
  readonly #taken: Set<string>
  /** Inner axis of each split axis, and the extents of the two. */
  readonly #inner = new Map<string, { readonly axis: string; readonly extents: readonly [Extent, Extent] }>()
  readonly #sources = new Map<ValueId, { readonly id: ValueId; readonly axes: readonly string[] }>()

  constructor(product: NodeOf<'matmul'>, values: GraphValue[]) {
    this.#product = product
    this.#values = values
    const { a, b, out } = product.subscripts
    this.#taken = new Set([...a, ...b, ...out])
  }

  /** Reads a factor from the move's input. False if a shared axis is summed over, or shared differently by the other factor. */
  read({ node, input, axes }: Move): boolean {
    const { a, subscripts } = this.#product
    const factor = Object.values(node.outputs).includes(a) ? 'a' : 'b'
    const made = this.#product[factor]
    const names = subscripts[factor]
    for (const [at, { of, isShared }] of axes.entries()) {
      const axis = names[of] ?? ''
      if (!isShared) continue
      const [whole, outer] = [valueAt(this.#values, made).shape[of], valueAt(this.#values, input).shape[at]]
      if (whole === undefined || outer === undefined || this.#inner.has(axis) || !subscripts.out.includes(axis)) return false
      this.#inner.set(axis, { axis: freshName(axis, this.#taken), extents: [outer, divideInto(whole, outer)] })
    }
    this.#sources.set(made, { id: input, axes: axes.map(({ of }) => names[of] ?? '') })
    return true
  }

  finish(): Instead | undefined {
    const { a, b, out, subscripts, name } = this.#product
    const [left, right, made] = [this.#factor(a, subscripts.a), this.#factor(b, subscripts.b), this.#split(out, subscripts.out)]
    if (left === undefined || right === undefined || made === undefined) return undefined
    const view: GraphNode[] = made.id === out ? [] : [{ kind: 'view', name: `${name}.whole`, input: made.id, out }]
    const product: NodeOf<'matmul'> = {
      ...this.#product,
      a: left.id,
      b: right.id,
      out: made.id,
      subscripts: { a: left.axes, b: right.axes, out: made.axes },
    }
    const before: GraphNode[] = [left, right].flatMap(({ id }, at) => {
      const input = at === 0 ? a : b
      return id === input || this.#sources.has(input) ? [] : [{ kind: 'view', name: `${name}.${'ab'[at]}`, input, out: id }]
    })
    this.#nodes.push(...before, product, ...view)
    return { values: this.#values, nodes: this.#nodes, out }
  }

  #factor(id: ValueId, axes: readonly string[]) {
    return this.#sources.get(id) ?? this.#split(id, axes)
  }

  /** A value with split axes; undefined if it is stored in another layout than row-major, which is for its axes as they are. */
  #split(id: ValueId, axes: readonly string[]): { readonly id: ValueId; readonly axes: readonly string[] } | undefined {
    if (!axes.some((axis) => this.#inner.has(axis))) return { id, axes }
    const value = valueAt(this.#values, id)
    if (value.layout !== 'row') return undefined
    const shape = axes.flatMap((axis, at) => this.#inner.get(axis)?.extents ?? value.shape[at] ?? [])
    const names = axes.flatMap((axis) => [axis, ...(this.#inner.has(axis) ? [this.#inner.get(axis)?.axis ?? ''] : [])])
    return { id: pushValue(this.#values, { ...value, shape }), axes: names }
  }
}
