/**
 * Columns whose elements all read their reductions: a softmax or a norm over channels, a batch norm. The axis of rows, which no reduction
 * depends on, becomes a walk after the reductions, so that they are computed once per column and not once per element.
 *
 *     y[b, c, s] = exp(x[b, c, s] - top) / total, where top = max(k: x[b, k, s]), ...     walks over k, then one over c that stores
 */
import type { Expr } from '../../ir/expr.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { mapStmt, rewrite, stmtExprs } from '../../ir/walk.js'
import { contains, substituteIndex, usesIndex } from '../normalise/rewrite.js'
import { acrossElements } from './across_elements.js'
import { isReduction, type Reduction } from './reduction.js'

/** Statements of column programs. */
export type Simple = StmtOf<'let'> | StmtOf<'store'> | Reduction

export const isSimple = (s: Stmt): s is Simple =>
  s.kind === 'let' || isReduction(s) || (s.kind === 'store' && s.when === undefined)

/** A kernel that walks an axis of its own: the rest is computed once for all of it, but the stores. */
export interface WalkedKernel {
  readonly kernel: Kernel
  readonly axis: RowAxis
}

/** The kernel as one that walks an axis behind its reductions; undefined where every axis is needed in front of them. */
export function walkedRows(given: Kernel): WalkedKernel | undefined {
  const plain = withoutRows(given)
  const kernel = acrossElements(plain) ?? plain
  const body = kernel.body.filter(isSimple)
  if (body.length !== kernel.body.length) return undefined
  // An axis as long as the reductions is what they reduce.
  const lengths = body.flatMap((s) => (isReduction(s) && s.length.kind === 'dim' ? [s.length.name] : []))
  const inner = [...kernel.rows].reverse()
  const axes = [...inner.filter(({ dim }) => lengths.includes(dim)), ...inner.filter(({ dim }) => !lengths.includes(dim))]
  for (const axis of axes) {
    const inlined = storedAlong(body, axis)
    if (inlined !== undefined) return { kernel: { ...kernel, body: inlined }, axis }
  }
  return undefined
}

/** Rows as their elements are computed, wherever those are read. */
export function withoutRows(kernel: Kernel): Kernel {
  const rows = new Map<string, StmtOf<'row'>>()
  const inlined = (e: Expr): Expr =>
    rewrite(e, (node) => {
      const row = node.kind === 'element' ? rows.get(node.row) : undefined
      return row === undefined || node.kind !== 'element' ? node : substituteIndex(row.value, row.index, node.index)
    })
  const body = kernel.body.flatMap((s): Stmt[] => {
    const made = mapStmt(s, inlined)
    if (made.kind !== 'row') return [made]
    rows.set(made.name, made)
    return []
  })
  return { ...kernel, body }
}

/** The body with what depends on the axis written into the stores; undefined where a reduction does, or a store does not. */
function storedAlong(body: readonly Simple[], axis: RowAxis): Simple[] | undefined {
  const along = new Map<string, Expr>()
  const inlined = (e: Expr): Expr => rewrite(e, (node) => (node.kind === 'local' ? (along.get(node.name) ?? node) : node))
  const depends = (s: Simple): boolean => stmtExprs(s).some((e) => usesIndex(e, axis.index) || contains(e, isAlong))
  const isAlong = (node: Expr): boolean => node.kind === 'local' && along.has(node.name)
  const made: Simple[] = []
  for (const s of body) {
    if (isReduction(s) && depends(s)) return undefined
    if (s.kind === 'let' && depends(s)) along.set(s.name, inlined(s.value))
    else if (s.kind === 'store') {
      if (!s.indices.some((at) => usesIndex(at, axis.index))) return undefined
      made.push({ ...s, indices: s.indices.map(inlined), value: inlined(s.value) })
    } else made.push(s)
  }
  return made
}
