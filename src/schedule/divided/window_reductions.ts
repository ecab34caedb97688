/**
 * Window (stencil) sums. A convolution sums, for each of its elements, a neighbourhood of a place in several axes. There are many elements and each
 * sums few values, so that they are no totals of tensors (src/schedule/divided/full_reductions.ts). Neighbouring threads have neighbouring elements, whose windows
 * are adjacent in memory as well, and each thread sums serially. Found before a kernel is brought into normal form.
 *
 *     for b, o, h, w: top = sum(c: sum(u: x[b, c, h + u, w])); y[b, o, h, w] = top
 *     for b, o, h: y[b, o, h, w] = sum(c: sum(u: x[b, c, h + u, w])) for w < W
 */
import { dim, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, introducedNames, rewrite, substitute } from '../../ir/walk.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { freshName } from '../normalise/normal.js'
import { contains, substituteIndex, usesIndex } from '../normalise/rewrite.js'

/** Kernels with fewer axes are over channels or matrices, each with a total of its own. */
const fewestAxes = 3

type Simple = StmtOf<'let'> | StmtOf<'store'> | StmtOf<'reduce'>

/** The kernel with its elements along a row and its sums inside elements; undefined if it has no sums over windows of several axes. */
export function windowsOf({ kernel }: Instance): Kernel | undefined {
  const last = kernel.rows.at(-1)
  const body = kernel.body.filter(isSimple)
  if (last === undefined || kernel.rows.length < fewestAxes || body.length < kernel.body.length || isUpdating(kernel))
    return undefined
  const named = new Map(body.flatMap((s) => (s.kind === 'let' ? [[s.name, s.value] as const] : [])))
  const sums = body.flatMap((s) => (s.kind === 'reduce' ? [{ ...s, value: writtenOut(s.value, named) }] : []))
  if (sums.length === 0 || !sums.every((sum) => isNest(sum) && usesIndex(sum.value, last.index))) return undefined
  if (!sums.some((sum) => readsWindow(sum, kernel)) || !body.every((s) => s.kind !== 'store' || endsAlong(s, last)))
    return undefined
  return alongRow(kernel, body, last)
}

const isSimple = (s: Stmt): s is Simple => s.kind === 'let' || s.kind === 'reduce' || (s.kind === 'store' && s.when === undefined)

/** Substitutes named scalars by their values. */
function writtenOut(expr: Expr, named: ReadonlyMap<string, Expr>): Expr {
  const once = substitute(expr, named)
  return once === expr ? expr : writtenOut(once, named)
}

/** True if a sum is over several axes whose extents are known before the kernel runs. */
const isNest = ({ value, length }: StmtOf<'reduce'>): boolean =>
  isHostExpr(length) &&
  contains(value, (node) => node.kind === 'fold') &&
  !contains(value, (node) => node.kind === 'fold' && !isHostExpr(node.length))

/** True if some index of a load depends on both an element's index and a summation index. */
function readsWindow({ index, value }: StmtOf<'reduce'>, { rows }: Kernel): boolean {
  const loops = new Set([index])
  contains(value, (node) => {
    if (node.kind === 'fold') loops.add(node.index)
    return false
  })
  const isAround = (place: Expr): boolean =>
    rows.some((row) => usesIndex(place, row.index)) && [...loops].some((loop) => usesIndex(place, loop))
  return contains(value, (node) => node.kind === 'load' && node.indices.some(isAround))
}

/** True if the last index of a store is the axis, and no other index depends on it. */
function endsAlong({ indices }: StmtOf<'store'>, { index }: RowAxis): boolean {
  const at = indices.at(-1)
  return at?.kind === 'index' && at.name === index && !indices.slice(0, -1).some((other) => usesIndex(other, index))
}

function alongRow(kernel: Kernel, body: readonly Simple[], last: RowAxis): Kernel {
  const taken = new Set([...kernel.dims, ...[...kernel.tensors, ...kernel.attrs].map(({ name }) => name)])
  for (const row of kernel.rows) taken.add(row.index)
  for (const s of body) for (const name of introducedNames(s)) taken.add(name)
  const length = dim(last.dim)
  const ofElements = new Set<string>()
  /** An expression of one element, with its index renamed. */
  const at = (expr: Expr, index: string): Expr =>
    rewrite(substituteIndex(expr, last.index, indexVar(index)), (node) =>
      node.kind === 'local' && ofElements.has(node.name)
        ? { kind: 'element', type: node.type, row: node.name, index: indexVar(index) }
        : node,
    )
  const moved = body.map((s): Stmt => {
    if (s.kind === 'let' && ![...freeNames(s.value)].some((name) => name === last.index || ofElements.has(name))) return s
    const index = freshName(last.index, taken)
    if (s.kind === 'store')
      return { kind: 'storeRow', tensor: s.tensor, rows: s.indices.slice(0, -1), length, index, value: at(s.value, index) }
    const own: Expr =
      s.kind === 'let'
        ? s.value
        : { kind: 'fold', type: s.type, monoid: s.monoid, length: s.length, index: s.index, value: s.value }
    const row: Stmt = { kind: 'row', name: s.name, type: s.type, length, index, value: at(own, index) }
    ofElements.add(s.name)
    return row
  })
  return { ...kernel, rows: kernel.rows.slice(0, -1), body: moved }
}
