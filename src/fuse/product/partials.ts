/**
 * Partials of a row: members behind a product that fold aligned groups of its columns. A group is what neighbouring threads hold of a row,
 * so its folds are stored beside the result, and a later kernel folds them instead of the row.
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

/** A fold over each group of columns, as an expression of the column. */
export interface Grouped {
  readonly store: StmtOf<'storeRow'>
  readonly fold: ExprOf<'fold'>
  /** An element, of the index `column`. */
  readonly element: Expr
  /** The dimension the columns run along, where the fold says where they end. */
  readonly end: string | undefined
}

/** The index variable that stands for the column of an element. */
export const column = 'column of the row'

const call = (fn: 'add' | 'mul' | 'sub' | 'minimum', a: Expr, b: Expr): Expr => ({ kind: 'call', type: 'i32', fn, args: [a, b] })

/** Both orders of the operands of an operation for which they are the same. */
const either = (fn: 'add' | 'mul' | 'minimum', a: Expr, b: Expr): readonly Expr[] => [call(fn, a, b), call(fn, b, a)]

/** A statement as a fold over groups of columns; undefined for any other. */
export function groupedOf(stmt: Stmt): Grouped | undefined {
  if (stmt.kind !== 'storeRow' || stmt.when !== undefined || stmt.value.kind !== 'fold') return undefined
  const { value: fold } = stmt
  const starts = either('mul', indexVar(stmt.index), i32(partColumns))
  const columns = starts.flatMap((start) => either('add', start, indexVar(fold.index)))
  const element = rewrite(fold.value, (node) => (columns.some((each) => equalExprs(each, node)) ? indexVar(column) : node))
  const left = freeNames(element)
  if (left.has(stmt.index) || left.has(fold.index)) return undefined
  const whole = i32(partColumns)
  if (equalExprs(fold.length, whole)) return { store: stmt, fold, element, end: undefined }
  const end = dimsOf(fold.length).find((dim) =>
    starts
      .flatMap((start) => either('minimum', whole, call('sub', dim, start)))
      .some((length) => equalExprs(length, fold.length)),
  )
  return end?.kind === 'dim' ? { store: stmt, fold, element, end: end.name } : undefined
}

function dimsOf(expr: Expr): readonly Expr[] {
  if (expr.kind === 'dim') return [expr]
  return expr.kind === 'call' ? expr.args.flatMap(dimsOf) : []
}

/** True if a member keeps something of each group of columns, and nothing else. */
export const keepsGroups = ({ kernel }: Member): boolean => kernel.body.every((stmt) => groupedOf(stmt) !== undefined)

/**
 * The program that makes partials.
 * @param members those between the products and the partials, and those that make these
 * @throws usage `plan.illegal` where folds are not over groups of the product's columns
 */
export function derivePartials(
  graph: Graph,
  group: string,
  members: readonly Member[],
  keeping: readonly Member[],
  layouts: LayoutsByName,
): Derived {
  const nodes = new Set([...members, ...keeping].map(({ node }) => node))
  const outputs = Object.fromEntries(
    keeping.flatMap(({ node }) => Object.entries(node.outputs).map(([name, id]) => [`${node.name}.${name}`, id])),
  )
  const seen = onlyNodes(graph, (node) => node.kind === 'op' && nodes.has(node))
  return deriveMembers({ ...seen, outputs }, group, [...members, ...keeping], layouts)
}

/** Refuses a program of partials that is none over the columns of the products. */
export function checkPartials(
  kernel: Kernel,
  group: string,
  { first, last, products }: { readonly first: string; readonly last: string; readonly products: readonly string[] },
): void {
  const refuse = (reason: string) => illegal(group, first, last, reason)
  const [dims = []] = kernel.tensors.flatMap((tensor) => (products.includes(tensor.name) ? [tensor.dims] : []))
  const rows = kernel.rows.map(({ dim }) => dim)
  if (rows.length !== dims.length - 1 || !dims.slice(0, -1).every((dim) => rows.includes(dim)))
    throw refuse('partials are kept for other rows than those of the product')
  for (const stmt of kernel.body) {
    const grouped = groupedOf(stmt)
    if (grouped === undefined)
      throw refuse(
        `partials are folds over ${partColumns} columns each, from a multiple of ${partColumns} on, and this is another value`,
      )
    if (grouped.end !== undefined && grouped.end !== dims.at(-1))
      throw refuse(`a group of columns ends where ${grouped.end} does, which is not the axis of the product's columns`)
    let inside = true
    rewrite(grouped.element, (node) => {
      if (node.kind !== 'load' || !products.includes(node.tensor)) return node
      const own = dims.map((dim) => kernel.rows.find((row) => row.dim === dim)?.index ?? column)
      inside &&= node.indices.every((at, i) => equalExprs(at, indexVar(own[i] ?? column)))
      return node
    })
    if (!inside) throw refuse('a partial of a group reads another element of the product than its own')
  }
}
