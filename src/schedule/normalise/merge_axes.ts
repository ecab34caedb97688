/**
 * Merges adjacent row axes into one. Two axes are merged if every access moves along the outer one as it does at the end of the inner one, so that
 * the pair is one run of places for all tensors: a permutation has no more axes than it moves. A kernel over fewer axes divides less, and
 * its chunks cross the ends of inner axes. Runs before a kernel is brought into normal form.
 *
 *     for b, h, w, c: y[b, h, w, c] = x[b, c, h, w]      becomes      for b, w < h * w, c: y[b, 0, w, c] = x[b, c, 0, w]
 */
import { dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { multiply, polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { dimsOf, extentOf } from '../../ir/row_axis.js'
import { isUpdating } from '../../ir/update.js'
import { mapStmt, rewrite } from '../../ir/walk.js'
import { classify, offsetOf } from '../access/access.js'
import { contains, rewriteDown, sameExpr, substituteDims, substituteIndex } from './rewrite.js'

type Access = Pick<ExprOf<'load'>, 'tensor' | 'indices'>
type Element = StmtOf<'let'> | StmtOf<'store'>

/**
 * The kernel with its axes merged; undefined if none can be. Two axes remain, since a product of all extents may exceed the range of an index.
 * Elements of a row are merged with the rows if that makes a longer run, and become elements of the kernel.
 */
export function mergeAxes({ kernel, dims }: Pick<Instance, 'kernel' | 'dims'>): Kernel | undefined {
  const elements = isUpdating(kernel) ? undefined : elementsOf(kernel)
  if (elements === undefined) return undefined
  let merged = elements
  for (let at = elements.rows.length - 1; at > 0 && merged.rows.length > 2; at--) {
    const [outer, inner] = [merged.rows[at - 1], merged.rows[at]]
    if (outer !== undefined && inner !== undefined && areOneRun(merged, outer, inner, dims))
      merged = withMerged(merged, outer, inner)
  }
  if (merged === elements) return undefined
  const last = elements.rows.at(-1)
  const isRow = elements !== kernel && last !== undefined && merged.rows.at(-1) === last
  return isRow ? rowsOf(merged, last.index, storedIndices(kernel)) : merged
}

/** Index of each stored row, in order. */
const storedIndices = ({ body }: Kernel): readonly string[] => body.flatMap((s) => (s.kind === 'storeRow' ? [s.index] : []))

/** The kernel with a scalar for each store; undefined if it has statements of another kind. */
export function elementsOf(kernel: Kernel): Kernel | undefined {
  const stores = kernel.body.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  const [first] = stores
  const isSame = (s: StmtOf<'storeRow'>): boolean =>
    s.length.kind === 'dim' && first !== undefined && sameExpr(s.length, first.length)
  const isSimple = kernel.body.every((s) =>
    s.kind === 'storeRow' ? s.when === undefined && s.axis === undefined && isSame(s) : isElement(s, first),
  )
  if (!isSimple) return undefined
  if (first?.length.kind !== 'dim') return kernel
  const { index, length } = first
  const body = kernel.body.map((s): Stmt => {
    if (s.kind !== 'storeRow') return s
    return {
      kind: 'store',
      tensor: s.tensor,
      indices: [...s.rows, indexVar(index)],
      value: substituteIndex(s.value, s.index, indexVar(index)),
    }
  })
  return { ...kernel, rows: [...kernel.rows, { index, dim: length.name }], body }
}

const isElement = (s: Stmt, row: StmtOf<'storeRow'> | undefined): s is Element =>
  s.kind === 'let' || (s.kind === 'store' && s.when === undefined && row === undefined)

/** The inverse of `elementsOf`. @param indices that stores had before it, since names are unique in a kernel */
function rowsOf(kernel: Kernel, element: string, indices: readonly string[]): Kernel {
  const [axis] = kernel.rows.slice(-1)
  const left = [...indices]
  const body = kernel.body.map((s): Stmt => {
    if (s.kind !== 'store' || axis === undefined) return s
    const index = left.shift() ?? element
    const value = substituteIndex(s.value, element, indexVar(index))
    return { kind: 'storeRow', tensor: s.tensor, rows: s.indices.slice(0, -1), length: dimVar(axis.dim), index, value }
  })
  return { ...kernel, rows: kernel.rows.slice(0, -1), body }
}

/** True if all accesses depend on two axes through the place in their product alone, and no value depends on either. */
function areOneRun(kernel: Kernel, outer: RowAxis, inner: RowAxis, dims: Instance['dims']): boolean {
  const isPlain = [outer, inner].every(({ also = [] }) => also.length === 0)
  const isLoop = inner === kernel.rows.at(-1)
  // A constant extent is known to be a multiple of a chunk, so that no chunk of it is checked.
  if (!isPlain || (isLoop && dimsOf(inner).some((dim) => getOwn(dims, dim) !== undefined))) return false
  const names = [outer.index, inner.index]
  const extent = polynomialOf(substituteDims(extentOf(inner), new Map(dimsOf(inner).map((dim) => [dim, extentIn(dim, dims)]))))
  const isRun = ({ tensor: name, indices }: Access): boolean => {
    const tensor = kernel.tensors.find((each) => each.name === name)
    if (tensor === undefined) return false
    const offset = offsetOf(tensor, indices, dims)
    // A scalar may itself depend on the axes.
    if (contains(offset, ({ kind }) => kind === 'local')) return false
    const [far, near] = [stepOf(offset, outer.index), stepOf(offset, inner.index)]
    return far !== undefined && near !== undefined && samePolynomial(far, multiply(near, extent))
  }
  // Stores along another axis are interchanged with the loop (src/schedule/access/interchange.ts).
  const isContiguous = ({ tensor: name, indices }: Access): boolean => {
    const tensor = kernel.tensors.find((each) => each.name === name)
    if (tensor === undefined) return false
    const offset = offsetOf(tensor, indices, dims)
    // Stores of a short axis that is written out are interleaved (src/schedule/access/interleaved.ts).
    const isInterleaved = kernel.storedPlaces !== undefined && stepOf(offset, inner.index)?.get('') !== undefined
    return isInterleaved || classify(offset, inner.index).kind === 'contiguous'
  }
  let isFree = true
  const check = (expr: Expr): void => {
    rewriteDown(expr, (node) => {
      if (node.kind === 'index') isFree &&= !names.includes(node.name)
      if (node.kind !== 'load') return undefined
      isFree &&= isRun(node)
      return node
    })
  }
  for (const s of kernel.body) {
    if (s.kind === 'let' || s.kind === 'store') check(s.value)
    if (s.kind === 'store') isFree &&= isRun(s) && (!isLoop || isContiguous(s))
  }
  return isFree
}

const extentIn = (dim: string, dims: Instance['dims']): Expr => {
  const known = getOwn(dims, dim)
  return known === undefined ? dimVar(dim) : i32(known)
}

/** The inner axis stands for both: places of the outer one are 0. */
function withMerged(kernel: Kernel, outer: RowAxis, inner: RowAxis): Kernel {
  const axis: RowAxis = { index: inner.index, dim: outer.dim, times: [...(outer.times ?? []), ...dimsOf(inner)] }
  return {
    ...kernel,
    rows: kernel.rows.flatMap((row) => (row === outer ? [] : row === inner ? [axis] : [row])),
    body: kernel.body.map((s) => mapStmt(s, (expr) => substituteIndex(expr, outer.index, i32(0)))),
  }
}

/** Values of all stores, with scalars written out. */
export function storedValues({ body }: Kernel): readonly Expr[] {
  const named = new Map<string, Expr>()
  const writtenOut = (e: Expr): Expr => rewrite(e, (node) => (node.kind === 'local' ? (named.get(node.name) ?? node) : node))
  return body.flatMap((s) => {
    if (s.kind === 'let') named.set(s.name, writtenOut(s.value))
    return s.kind === 'store' ? [writtenOut(s.value)] : []
  })
}
