/**
 * Nodes that treat each row of some rows by itself, wherever it lies: such rows may be moved, and padding between them removed. An op does so if it
 * reads and writes other values at its own row alone, and computes with neither the number of a row nor that of all rows.
 */
import type { Expr } from '../../ir/expr.js'
import type { Graph, GraphNode, ValueId } from '../../ir/graph.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { type Extent, sameExtent } from '../../ir/shape.js'
import { operands, stmtExprs } from '../../ir/walk.js'
import { valueAt } from './edit.js'

/** A use of rows along an axis that depends on where they lie. */
type Fault = 'combines rows' | 'reads another row' | 'computes with the number of a row' | 'computes with the number of rows'

/**
 * The use of rows for which a node does not treat each by itself, if it has one.
 * @param rows extent of the rows, by which axes along them are known
 * @param ops kernels of the graph's ops
 */
export function rowFault(graph: Graph, node: GraphNode, rows: Extent, ops: ReadonlyMap<string, Kernel>): Fault | undefined {
  const isRows = (id: ValueId | undefined, place: number): boolean => {
    const extent = id === undefined ? undefined : valueAt(graph.values, id).shape[place]
    return extent !== undefined && sameExtent(extent, rows)
  }
  if (node.kind === 'matmul') {
    const { a, b, out } = node.subscripts
    const sums = (axes: readonly string[], id: ValueId) => axes.some((axis, place) => !out.includes(axis) && isRows(id, place))
    return sums(a, node.a) || sums(b, node.b) ? 'combines rows' : undefined
  }
  const kernel = node.kind === 'op' ? ops.get(node.op) : undefined
  if (node.kind !== 'op' || kernel === undefined) return undefined
  const along = kernel.tensors.flatMap(({ name, dims }) =>
    dims.filter((_, place) => isRows(node.inputs[name] ?? node.outputs[name], place)),
  )
  return firstOf([...new Set(along)].map((dim) => faultAlong(kernel, dim)))
}

const firstOf = (faults: readonly (Fault | undefined)[]): Fault | undefined => faults.find((fault) => fault !== undefined)

/** The same of an op, by the dimension along the rows. */
function faultAlong(kernel: Kernel, dim: string): Fault | undefined {
  const rows = new Set(kernel.rows.flatMap((row) => (row.dim === dim ? [row.index] : [])))
  return firstOf(
    kernel.body.map((stmt) => {
      const isAlong = 'length' in stmt && stmt.length.kind === 'dim' && stmt.length.name === dim
      if (isAlong && stmt.kind !== 'storeRow' && stmt.kind !== 'row') return 'combines rows'
      const own = isAlong ? new Set([...rows, stmt.index]) : rows
      return faultIn(numbersOf(stmt, isAlong), { kernel, dim, rows: own })
    }),
  )
}

/** Expressions of a statement, without the places of what it stores and without the length of its loop over the rows. */
function numbersOf(stmt: Stmt, isAlong: boolean): readonly Expr[] {
  const places = stmt.kind === 'store' ? stmt.indices : 'rows' in stmt ? stmt.rows : []
  const isPlace = (expr: Expr): boolean => expr.kind === 'index' && places.includes(expr)
  return stmtExprs(stmt).filter((expr) => !isPlace(expr) && !(isAlong && 'length' in stmt && expr === stmt.length))
}

interface Along {
  readonly kernel: Kernel
  readonly dim: string
  /** Indices along the rows. */
  readonly rows: ReadonlySet<string>
}

function faultIn(exprs: readonly Expr[], { kernel, dim, rows }: Along): Fault | undefined {
  const isOwn = (expr: Expr): boolean => expr.kind === 'index' && rows.has(expr.name)
  const left = [...exprs]
  for (let expr = left.pop(); expr !== undefined; expr = left.pop()) {
    if (isOwn(expr)) return 'computes with the number of a row'
    if (expr.kind === 'dim' && expr.name === dim) return 'computes with the number of rows'
    if (expr.kind === 'load') {
      const { tensor: name, indices } = expr
      const dims = kernel.tensors.find((tensor) => tensor.name === name)?.dims ?? []
      if (indices.some((at, i) => dims[i] === dim && !isOwn(at))) return 'reads another row'
      left.push(...indices.filter((_, i) => dims[i] !== dim))
    } else if (expr.kind === 'element' && isOwn(expr.index)) continue
    else left.push(...operands(expr))
  }
  return undefined
}
