/**
 * Paths from quantised values to the matmuls that multiply them: the integer matmuls, and the values between that hold int8 since their nodes
 * only move elements. Found before a graph is quantised.
 */
import type { Expr } from '../../ir/expr.js'
import { type Graph, type GraphNode, inputsOf, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { operands } from '../../ir/walk.js'
import { aliasesOf } from './edit.js'

export class Int8Propagation {
  readonly #graph: Graph
  readonly #ops: ReadonlyMap<string, Kernel>
  /** Names of the quantised values. */
  readonly named: ReadonlyMap<ValueId, string>
  /** Values on a path from those to an integer matmul. */
  readonly traced = new Set<ValueId>()
  /** Matmuls whose operands are all weights or come from quantised values. */
  readonly integer: ReadonlySet<GraphNode>

  constructor(graph: Graph, ops: ReadonlyMap<string, Kernel>, named: ReadonlyMap<ValueId, string>) {
    this.#graph = graph
    this.#ops = ops
    this.named = named
    this.integer = new Set(graph.nodes.filter((node) => node.kind === 'matmul' && this.#isInteger(node)))
  }

  /** Name of the quantised value that an operand comes from; undefined for a weight. */
  sourceOf(id: ValueId): string | undefined {
    const path = this.#pathTo(id)
    if (!Array.isArray(path)) return undefined
    const last = path.at(-1)
    return this.named.get(last === undefined ? id : (this.#movedFrom(last) ?? id))
  }

  /** Name of a reader that reads a moved value as floats, in any shape; undefined if all readers multiply or move it. */
  floatReader(id: ValueId): string | undefined {
    const seen = aliasesOf(this.#graph.nodes, id)
    const reader = this.#graph.nodes.find(
      (node) =>
        node.kind !== 'view' &&
        inputsOf(node).some((input) => seen.has(input)) &&
        !this.integer.has(node) &&
        !outputsOf(node).some((output) => this.traced.has(output)),
    )
    const isResult = Object.values(this.#graph.outputs).some((output) => seen.has(output))
    return reader?.name ?? (isResult ? 'the caller of the graph' : undefined)
  }

  /** True if every operand is a weight or comes from a quantised value, and at least one does; marks the values on the path. */
  #isInteger({ a, b }: NodeOf<'matmul'>): boolean {
    const paths = [a, b].map((id) => this.#pathTo(id))
    if (paths.includes(undefined) || paths.every((path) => path === 'weight')) return false
    for (const path of paths) if (Array.isArray(path)) for (const id of path) this.traced.add(id)
    return true
  }

  /** Values from an operand, inclusive, back to the quantised value that it derives from; undefined if it derives from none. */
  #pathTo(id: ValueId): readonly ValueId[] | 'weight' | undefined {
    if (this.weightName(id) !== undefined) return 'weight'
    const path: ValueId[] = []
    for (let at: ValueId | undefined = id; at !== undefined; ) {
      if (this.named.has(at)) return path
      path.push(at)
      at = this.#movedFrom(at)
    }
    return undefined
  }

  /** The value whose elements a node moves to produce this one. */
  #movedFrom(id: ValueId): ValueId | undefined {
    const node = this.#graph.nodes.find((candidate) => outputsOf(candidate).includes(id))
    if (node?.kind === 'view') return node.input
    const moved = node?.kind === 'op' ? this.moveOf(node)?.moved : undefined
    return node?.kind !== 'op' || moved === undefined ? undefined : node.inputs[moved]
  }

  /** The kernel of a node that only moves elements of one of its inputs, and the name of that input. */
  moveOf({ op }: NodeOf<'op'>): { readonly kernel: Kernel; readonly moved: string } | undefined {
    const kernel = this.#ops.get(op)
    const moved = kernel === undefined ? undefined : movedBy(kernel)
    return kernel === undefined || moved === undefined ? undefined : { kernel, moved }
  }

  /** Name of a weight by its value; undefined for other values. */
  weightName(id: ValueId): string | undefined {
    return Object.entries(this.#graph.weights).find(([, value]) => value === id)?.[0]
  }
}

/**
 * The tensor of the op's storage type whose elements a body only moves: each result is one of its elements, or zero. Undefined for a body that
 * reads several such tensors, whose scales may differ. Also undefined if choices depend on the magnitude of elements, which int8 alone does not
 * determine.
 */
function movedBy({ body, tensors }: Kernel): string | undefined {
  const stored = tensors.filter(({ access, dtype }) => access === 'in' && typeof dtype !== 'string')
  const [moved] = stored
  if (moved === undefined || stored.length > 1 || body.length === 0) return undefined
  const reads = (expr: Expr): boolean => (expr.kind === 'load' && expr.tensor === moved.name) || operands(expr).some(reads)
  const moves = (expr: Expr): boolean => {
    if (expr.kind === 'load') return expr.tensor === moved.name
    if (expr.kind === 'const') return expr.value === 0
    const [when, left, right] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
    return when !== undefined && left !== undefined && right !== undefined && !reads(when) && moves(left) && moves(right)
  }
  const isMove = body.every((stmt) => (stmt.kind === 'store' || stmt.kind === 'storeRow') && moves(stmt.value))
  return isMove ? moved.name : undefined
}
