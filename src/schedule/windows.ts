/**
 * Sums over windows: a convolution adds up, for each of its elements, what lies around a place in several axes. Elements are many and what
 * each combines is few, so that they are no totals of tensors (src/schedule/totals.ts): neighbouring threads have neighbouring elements,
 * whose windows lie side by side as well, and add up by themselves. Found before a kernel is brought into normal form.
 *
 *     for b, o, h, w: top = sum(c: sum(u: x[b, c, h + u, w])); y[b, o, h, w] = top
 *     for b, o, h: y[b, o, h, w] = sum(c: sum(u: x[b, c, h + u, w])) for w < W
 */
import { dim, index as indexVar } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../ir/kernel.js'
import { isUpdating } from '../ir/update.js'
import { freeNames, introducedNames, rewrite, substitute } from '../ir/walk.js'
import { isHostExpr } from './host_expr.js'
import { freshName } from './normal.js'
import { contains, substituteIndex, usesIndex } from './rewrite.js'

/** Fewer axes are of channels or of matrices, each with a total of its own. */
const fewestAxes = 3

type Simple = StmtOf<'let'> | StmtOf<'store'> | StmtOf<'reduce'>

/** The kernel with its elements along a row, the sums among them; undefined where it has no sums over windows of several axes. */
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

/** The expression with every named scalar written out. */
function writtenOut(expr: Expr, named: ReadonlyMap<string, Expr>): Expr {
  const once = substitute(expr, named)
  return once === expr ? expr : writtenOut(once, named)
}

/** True if a sum is over several axes, whose extents are known before the kernel runs. */
const isNest = ({ value, length }: StmtOf<'reduce'>): boolean =>
  isHostExpr(length) &&
  contains(value, (node) => node.kind === 'fold') &&
  !contains(value, (node) => node.kind === 'fold' && !isHostExpr(node.length))

/** True if a place that is read moves with an element and with what is summed up for it. */
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

/** True if elements are stored along an axis as it runs. */
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
  /** An expression of one element, at another name for its place. */
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
