/**
 * Partials of a row: members after a matmul that reduce aligned groups of its columns. Neighbouring threads hold a group of a row, so its reductions
 * are stored in addition to the result, and a later kernel reduces them instead of the row.
 */
import { i32, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { partColumns } from '../../ir/product.js'
import { freeNames, rewrite } from '../../ir/walk.js'
import type { LayoutsByName } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { deriveMembers } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { onlyNodes } from './parts.js'

/** A reduction over each group of columns, as an expression of the column. */
export interface Grouped {
  readonly store: StmtOf<'storeRow'>
  readonly reduction: ExprOf<'fold'>
  /** An element, of the index `column`. */
  readonly element: Expr
  /** Dimension that the columns run along, if the reduction states where they end. */
  readonly end: string | undefined
}

/** The index variable that stands for the column of an element. */
export const column = 'column of the row'

const call = (fn: 'add' | 'mul' | 'sub' | 'minimum', a: Expr, b: Expr): Expr => ({ kind: 'call', type: 'i32', fn, args: [a, b] })

/** Both operand orders of a commutative operation. */
const either = (fn: 'add' | 'mul' | 'minimum', a: Expr, b: Expr): readonly Expr[] => [call(fn, a, b), call(fn, b, a)]

/** A statement as a reduction over groups of columns; undefined for any other. */
export function groupedOf(stmt: Stmt): Grouped | undefined {
  if (stmt.kind !== 'storeRow' || stmt.when !== undefined || stmt.value.kind !== 'fold') return undefined
  const { value: reduction } = stmt
  const starts = either('mul', indexVar(stmt.index), i32(partColumns))
  const columns = starts.flatMap((start) => either('add', start, indexVar(reduction.index)))
  const element = rewrite(reduction.value, (node) => (columns.some((each) => equalExprs(each, node)) ? indexVar(column) : node))
  const left = freeNames(element)
  if (left.has(stmt.index) || left.has(reduction.index)) return undefined
  const whole = i32(partColumns)
  if (equalExprs(reduction.length, whole)) return { store: stmt, reduction, element, end: undefined }
  const end = dimsOf(reduction.length).find((dim) =>
    starts
      .flatMap((start) => either('minimum', whole, call('sub', dim, start)))
      .some((length) => equalExprs(length, reduction.length)),
  )
  return end?.kind === 'dim' ? { store: stmt, reduction, element, end: end.name } : undefined
}

function dimsOf(expr: Expr): readonly Expr[] {
  if (expr.kind === 'dim') return [expr]
  return expr.kind === 'call' ? expr.args.flatMap(dimsOf) : []
}

/** True if a member only reduces groups of columns. */
export const keepsGroups = ({ kernel }: Member): boolean => kernel.body.every((stmt) => groupedOf(stmt) !== undefined)

/**
 * The program of partials.
 * @param members those between the matmuls and the partials
 * @param reducers those that compute the partials
 * @throws usage `plan.illegal` for reductions that are not over groups of the matmul's columns
 */
export function derivePartials(
  graph: Graph,
  group: string,
  members: readonly Member[],
  reducers: readonly Member[],
  layouts: LayoutsByName,
): Derived {
  const nodes = new Set([...members, ...reducers].map(({ node }) => node))
  const outputs = Object.fromEntries(
    reducers.flatMap(({ node }) => Object.entries(node.outputs).map(([name, id]) => [`${node.name}.${name}`, id])),
  )
  const seen = onlyNodes(graph, (node) => node.kind === 'op' && nodes.has(node))
  return deriveMembers({ ...seen, outputs }, group, [...members, ...reducers], layouts)
}

/** Refuses a program of partials that does not run over the columns of the matmuls. */
export function checkPartials(
  kernel: Kernel,
  group: string,
  { first, last, products }: { readonly first: string; readonly last: string; readonly products: readonly string[] },
): void {
  const refuse = (reason: string) => illegal(group, first, last, reason)
  const [dims = []] = kernel.tensors.flatMap((tensor) => (products.includes(tensor.name) ? [tensor.dims] : []))
  const rows = kernel.rows.map(({ dim }) => dim)
  if (rows.length !== dims.length - 1 || !dims.slice(0, -1).every((dim) => rows.includes(dim)))
    throw refuse('partials have other rows than the matmul')
  for (const stmt of kernel.body) {
    const grouped = groupedOf(stmt)
    if (grouped === undefined)
      throw refuse(
        `partials are reductions over ${partColumns} columns each, from a multiple of ${partColumns} on, and this is another value`,
      )
    if (grouped.end !== undefined && grouped.end !== dims.at(-1))
      throw refuse(`a group of columns ends where ${grouped.end} does, which is not the axis of the matmul's columns`)
    let inside = true
    rewrite(grouped.element, (node) => {
      if (node.kind !== 'load' || !products.includes(node.tensor)) return node
      const own = dims.map((dim) => kernel.rows.find((row) => row.dim === dim)?.index ?? column)
      inside &&= node.indices.every((at, i) => equalExprs(at, indexVar(own[i] ?? column)))
      return node
    })
    if (!inside) throw refuse('a partial of a group reads another element of the matmul than its own')
  }
}
