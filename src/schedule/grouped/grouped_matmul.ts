/**
 * Matmuls whose rows choose their matrix, found in row programs. A sum over two reads is one if one factor is a row of k elements, wherever it is,
 * and the other the row of an output column in a matrix that depends on the output row: experts, adapters, jagged batches. The code around the sum is
 * the epilogue of each element. Derived from bodies, not from names; a program of any other form keeps its rows.
 *
 *     y[t, c] = gate[t] * sum(i < k: x[token[t], i] * w[expert[t], c, i])
 */
import { dim, index } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { sameExpr } from '../../ir/expr_hash.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, RowAxis, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { renameLoops } from '../../ir/loop_names.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, operands, rewrite, substitute, visit } from '../../ir/walk.js'
import { freshName } from '../normalise/normal.js'
import { contains } from '../normalise/rewrite.js'

/** `left[..., k]` times `right[matrix, n, k]` for each row, then the epilogue. Expressions are over the indices of `rows`. */
export interface GroupedMatmul {
  readonly rows: readonly RowAxis[]
  readonly n: string
  readonly k: string
  /** Place of the row of the left factor; its last index runs over k. */
  readonly left: { readonly tensor: string; readonly indices: readonly Expr[] }
  readonly right: { readonly tensor: string; readonly matrix: Expr }
  /** Tensor of the epilogue that stands for the sums. */
  readonly accumulator: string
  /** An elementwise program over the rows and columns n. */
  readonly epilogue: Kernel
}

type Sum = ExprOf<'fold'>

/** A stored element, as an expression of the rows and the column. */
interface Stored {
  readonly tensor: string
  readonly rows: readonly Expr[]
  readonly value: Expr
}

/** The elements of a program, each a function of one row and one column. */
interface Elements {
  readonly rows: readonly RowAxis[]
  readonly column: string
  readonly n: string
  readonly stored: readonly Stored[]
}

/** The grouped matmul that an instance is; undefined if it is none. */
export function groupedMatmul({ kernel, types, dims }: Instance): GroupedMatmul | undefined {
  if (isUpdating(kernel) || kernel.computed !== undefined || Object.keys(dims).length > 0) return undefined
  const elements = elementsOf(kernel)
  if (elements === undefined) return undefined
  const axes = [...elements.rows.map((axis) => axis.dim), elements.n]
  if (elements.rows.length === 0 || new Set(axes).size < axes.length) return undefined
  const sums: Sum[] = []
  for (const { value } of elements.stored) {
    visit(value, (node) => {
      if (node.kind === 'fold' && !sums.some((known) => sameExpr(known, node))) sums.push(node)
    })
  }
  const [sum, ...others] = sums
  if (sum === undefined || others.length > 0) return undefined
  const factors = factorsOf(kernel, sum, elements)
  if (factors === undefined) return undefined
  const isStored = ({ tensor }: { readonly tensor: string }): boolean =>
    kernel.tensors.some(({ name, dtype }) => name === tensor && floats.includes(resolveDType(dtype, types)))
  if (!isStored(factors.left) || !isStored(factors.right)) return undefined
  if (!elements.stored.some(({ value }) => isAlways(value, sum)) && mayMiss(factors)) return undefined
  const accumulator = freshName('sums', new Set([...kernel.tensors.map(({ name }) => name), ...kernel.dims]))
  const epilogue = epilogueOf(kernel, elements, sum, accumulator)
  return { rows: elements.rows, n: elements.n, ...factors, accumulator, epilogue }
}

const floats: readonly string[] = ['f32', 'f16', 'bf16']

/** Elements with scalars and rows written out; undefined if the program has other constructs, or outputs of other forms. */
function elementsOf(kernel: Kernel): Elements | undefined {
  const scalars = new Map<string, Expr>()
  const rows = new Map<string, StmtOf<'row'>>()
  const stores: StmtOf<'store'>[] = []
  const rowStores: StmtOf<'storeRow'>[] = []
  const written = (expr: Expr): Expr =>
    rewrite(substitute(expr, scalars), (node) => {
      const row = node.kind === 'element' ? rows.get(node.row) : undefined
      return node.kind === 'element' && row !== undefined ? substitute(row.value, new Map([[row.index, node.index]])) : node
    })
  for (const stmt of kernel.body) {
    if (stmt.kind === 'let') scalars.set(stmt.name, written(stmt.value))
    else if (stmt.kind === 'reduce') {
      const { type, monoid, length, index: at, value } = stmt
      scalars.set(stmt.name, { kind: 'fold', type, monoid, length, index: at, value: written(value) })
    } else if (stmt.kind === 'row') rows.set(stmt.name, { ...stmt, value: written(stmt.value) })
    else if (stmt.kind === 'store') stores.push(stmt)
    else if (stmt.kind === 'storeRow') rowStores.push(stmt)
    else return undefined
  }
  const value = (expr: Expr): Expr => renameLoops(written(expr))
  const [first, ...rest] = rowStores
  if (first !== undefined) {
    const { length, index: column } = first
    if (stores.length > 0 || length.kind !== 'dim') return undefined
    if (!rowStores.every((s) => s.when === undefined && s.axis === undefined && sameExpr(s.length, length))) return undefined
    const stored = [first, ...rest].map((s): Stored => {
      const own = substitute(s.value, new Map([[s.index, index(column)]]))
      return { tensor: s.tensor, rows: s.rows.map(written), value: value(own) }
    })
    return { rows: kernel.rows, column, n: length.name, stored }
  }
  // A row per element: its last axis is that of columns.
  const last = kernel.rows.at(-1)
  if (last === undefined || !kernel.rows.every(isPlain)) return undefined
  const stored = stores.map(
    (s): Stored => ({ tensor: s.tensor, rows: s.indices.slice(0, -1).map(written), value: value(s.value) }),
  )
  const ends = stores.map(({ indices }) => indices.at(-1))
  if (stored.some((s) => s.rows.some((at) => freeNames(at).has(last.index)))) return undefined
  if (!ends.every((end) => end?.kind === 'index' && end.name === last.index)) return undefined
  return { rows: kernel.rows.slice(0, -1), column: last.index, n: last.dim, stored }
}

const isPlain = ({ also, times }: RowAxis): boolean => also === undefined && times === undefined

/** The two factors of a sum, if it is a matmul whose rows choose a matrix. */
function factorsOf(
  { tensors }: Kernel,
  { monoid, length, index: along, value }: Sum,
  { rows, column, n }: Elements,
): Pick<GroupedMatmul, 'k' | 'left' | 'right'> | undefined {
  if (monoid !== 'sum' || length.kind !== 'dim' || value.kind !== 'call' || value.fn !== 'mul') return undefined
  if (!rows.every(isPlain)) return undefined
  const k = length.name
  const paramOf = ({ tensor }: ExprOf<'load'>): TensorParam | undefined => tensors.find(({ name }) => name === tensor)
  const isRow = (load: ExprOf<'load'>): boolean => {
    const param = paramOf(load)
    const [last] = load.indices.slice(-1)
    return param?.layout.name === 'row' && param.dims.at(-1) === k && last?.kind === 'index' && last.name === along
  }
  const [a, b] = value.args
  if (a?.kind !== 'load' || b?.kind !== 'load' || !isRow(a) || !isRow(b)) return undefined
  const ofRow = (at: Expr): boolean => !freeNames(at).has(column) && !freeNames(at).has(along)
  for (const [x, w] of [
    [a, b],
    [b, a],
  ] as const) {
    const [matrix, own, ...more] = w.indices
    const isColumn = own?.kind === 'index' && own.name === column && more.length === 1 && paramOf(w)?.dims[1] === n
    if (matrix === undefined || !isColumn || !ofRow(matrix) || !isChosen(matrix, rows)) continue
    const indices = x.indices.slice(0, -1)
    if (indices.length > 0 && indices.every(ofRow) && x.tensor !== w.tensor)
      return { k, left: { tensor: x.tensor, indices }, right: { tensor: w.tensor, matrix } }
  }
  return undefined
}

/** True if a matrix depends on the row. */
const isChosen = (matrix: Expr, rows: readonly RowAxis[]): boolean => {
  const names = freeNames(matrix)
  return rows.some((axis) => names.has(axis.index))
}

/** True if an expression computes the sum for every element, rather than under a condition. */
function isAlways(value: Expr, sum: Sum): boolean {
  if (value.kind === 'fold') return sameExpr(value, sum)
  const [first] = operands(value)
  const isLazy = value.kind === 'call' && (value.fn === 'select' || value.fn === 'and' || value.fn === 'or')
  return (isLazy ? (first === undefined ? [] : [first]) : operands(value)).some((each) => isAlways(each, sum))
}

/**
 * True if places of the factors may not exist where a condition does not ask for them. A matrix that does not exist is none; anything else must be
 * there for every row.
 */
function mayMiss({ left, right }: Pick<GroupedMatmul, 'left' | 'right'>): boolean {
  const isRead = (at: Expr): boolean => contains(at, ({ kind }) => kind === 'load')
  const { matrix } = right
  const nested = matrix.kind === 'load' ? matrix.indices.some(isRead) : isRead(matrix)
  return nested || left.indices.some(isRead)
}

/** The program with the sum as an input, over chunks of columns. */
function epilogueOf(kernel: Kernel, { rows, column, n, stored }: Elements, sum: Sum, accumulator: string): Kernel {
  const dims = [...rows.map((axis) => axis.dim), n]
  const load: Expr = {
    kind: 'load',
    type: sum.type,
    tensor: accumulator,
    indices: [...rows.map((axis) => index(axis.index)), index(column)],
  }
  const taken = new Set(rows.map((axis) => axis.index))
  const body = stored.map((each): StmtOf<'storeRow'> => {
    // Every loop has a name of its own.
    const own = freshName(column, taken)
    const value = rewrite(each.value, (node) => (node.kind === 'fold' && sameExpr(node, sum) ? load : node))
    const renamed = substitute(value, new Map([[column, index(own)]]))
    return { kind: 'storeRow', tensor: each.tensor, rows: each.rows, length: dim(n), index: own, value: renamed }
  })
  const sums: TensorParam = { name: accumulator, access: 'in', dtype: 'f32', dims, layout: rowMajor(dims) }
  return { ...kernel, rows, tensors: [sums, ...kernel.tensors], body }
}
