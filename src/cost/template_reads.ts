/**
 * Elements of each tensor that the parts of a matmul and attention read, for the cost model: at most the tensor, and at most one element for each combination of the
 * indices that a load depends on. So a gather counts the rows it fetches, not the table.
 */
import type { Expr, ExprOf } from '../ir/expr.js'
import type { Kernel } from '../ir/kernel.js'
import { plainExpr } from '../ir/print.js'
import { countOf } from '../ir/row_axis.js'
import type { AttentionKernel, DecodeAttentionKernel, RowAccess } from '../ir/template.js'
import { stmtExprs, substitute, visit } from '../ir/walk.js'
import { lengthOf, type Sizes } from './sizes.js'

/** Loads of tensors: how many elements each distinct load can find. */
class Reads {
  readonly #loads = new Map<string, { readonly tensor: string; readonly elements: number }>()

  /** Adds the loads of an expression. `extents` are those of the indices it uses; a value of the row depends on all of `rows`. */
  add(expr: Expr, extents: ReadonlyMap<string, number>, rows: readonly string[], sizes: Sizes): void {
    const inner = new Map(extents)
    visit(expr, (node) => {
      if (node.kind === 'fold') inner.set(node.index, lengthOf(node.length, sizes))
    })
    visit(expr, (node) => {
      if (node.kind === 'load') this.#add(node, inner, rows)
    })
  }

  #add(load: ExprOf<'load'>, extents: ReadonlyMap<string, number>, rows: readonly string[]): void {
    const used = new Set<string>()
    for (const place of load.indices) {
      visit(place, (node) => {
        if (node.kind === 'index') used.add(node.name)
        if (node.kind === 'local' || node.kind === 'element') for (const row of rows) used.add(row)
      })
    }
    const elements = [...used].reduce((product, name) => product * (extents.get(name) ?? Number.POSITIVE_INFINITY), 1)
    // Loops of one length read the same elements, regardless of the names of their indices.
    const renamed = new Map(
      [...extents].map(([name, extent]) => [
        name,
        { kind: 'index', type: 'i32', name: rows.includes(name) ? name : `#${extent}` } as const,
      ]),
    )
    this.#loads.set(plainExpr(substitute(load, renamed)), { tensor: load.tensor, elements })
  }

  /** Elements read of each tensor, before its size is considered. */
  total(): Map<string, number> {
    const totals = new Map<string, number>()
    for (const { tensor, elements } of this.#loads.values()) totals.set(tensor, (totals.get(tensor) ?? 0) + elements)
    return totals
  }
}

/** Elements of each tensor that a row program reads, not limited by the size of the tensor. */
export function readsOf(kernel: Kernel, sizes: Sizes): ReadonlyMap<string, number> {
  const reads = new Reads()
  const rows = kernel.rows.map(({ index }) => index)
  const outer = new Map(
    kernel.rows.map((axis) => [axis.index, countOf(axis, (dim) => sizes.dims[dim] ?? Number.POSITIVE_INFINITY)]),
  )
  for (const stmt of kernel.body) {
    const extents = 'length' in stmt ? new Map([...outer, [stmt.index, lengthOf(stmt.length, sizes)]]) : new Map(outer)
    if ('column' in stmt) extents.set(stmt.column, lengthOf(stmt.width, sizes))
    for (const expr of stmtExprs(stmt)) reads.add(expr, extents, rows, sizes)
  }
  return reads.total()
}

/** Extents of an attention kernel by role. */
export interface AttentionExtents {
  readonly batch: number
  readonly heads: number
  readonly queries: number
  readonly keys: number
  readonly headDim: number
  readonly valueDim: number
}

export const attentionExtents = (kernel: AttentionKernel, sizes: Sizes): AttentionExtents => ({
  ...rowExtents(kernel, sizes),
  keys: lengthOf(kernel.keys, sizes),
  valueDim: lengthOf(kernel.valueDim, sizes),
})

const rowExtents = (kernel: AttentionKernel | DecodeAttentionKernel, sizes: Sizes) => ({
  batch: lengthOf(kernel.batch, sizes),
  heads: lengthOf(kernel.heads, sizes),
  queries: lengthOf(kernel.queries, sizes),
  headDim: lengthOf(kernel.headDim, sizes),
})

/** The element `element` of a row. */
const row = ({ tensor, indices }: RowAccess): Expr => {
  const element: Expr = { kind: 'index', type: 'i32', name: 'element' }
  return { kind: 'load', type: 'f32', tensor, indices: [...indices.slice(0, -1), element] }
}

/** Elements of each tensor that an attention kernel reads, not limited by the size of the tensor. Keys and values are read once per head. */
export function attentionReads(kernel: AttentionKernel, sizes: Sizes): ReadonlyMap<string, number> {
  const { batch, heads, queries, keys, headDim } = attentionExtents(kernel, sizes)
  const extents = new Map([
    ['b', batch],
    ['h', heads],
    ['i', queries],
    ['j', keys],
    ['element', headDim],
  ])
  const reads = new Reads()
  const { query, key, value, score, range, queryCount, ownedCount, out } = kernel
  const slots = [row(query), row(key), row(value), score, range.lower, range.upper, queryCount, ownedCount, ...out.indices]
  for (const expr of slots) reads.add(expr, extents, ['b', 'h', 'i', 'j'], sizes)
  return reads.total()
}

/** Extents of decode attention by role, with all positions attended to. */
export const decodeExtents = (kernel: DecodeAttentionKernel, sizes: Sizes) => ({
  ...rowExtents(kernel, sizes),
  places: lengthOf(kernel.places, sizes),
})

/** Elements that decode attention reads of each tensor: keys and values once per query row. */
export function decodeReads(kernel: DecodeAttentionKernel, sizes: Sizes): ReadonlyMap<string, number> {
  const { batch, heads, queries, headDim, places } = decodeExtents(kernel, sizes)
  const extents = new Map([
    ['b', batch],
    ['h', heads],
    ['i', queries],
    ['j', places],
    ['c', headDim],
    ['element', headDim],
  ])
  const reads = new Reads()
  const { query, owner, key, value, score, range, fresh, out } = kernel
  const computed = fresh === undefined ? [] : [fresh.place, fresh.key, fresh.value]
  const scales = [key, value].flatMap(({ scale }) => scale ?? [])
  const slots = [query, owner, row(key), row(value), score, range.lower, range.upper, ...scales, ...computed, ...out.indices]
  for (const expr of slots) reads.add(expr, extents, ['b', 'h', 'i', 'j'], sizes)
  return reads.total()
}
