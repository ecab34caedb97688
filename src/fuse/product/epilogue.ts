/** Row programs after matmuls: the conditions for a main loop to run one on chunks of columns, and the program of a bare matmul. */
import { dim, index } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Graph, NodeOf } from '../../ir/graph.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { linearOf } from '../../ir/linear.js'
import { renameLoops } from '../../ir/loop_names.js'
import { partColumns, type ReducedRows } from '../../ir/product.js'
import { mapStmt, rewrite, stmtExprs, substitute, visit, visitKernel } from '../../ir/walk.js'
import { type LayoutsByName, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { illegal, isElementwise } from '../space/space.js'
import { readsInChunk } from './columns.js'
import { floatTypes } from './identity.js'
import { layoutOver } from './layout_over.js'
import type { Roles } from './roles.js'

/** An epilogue, its tensors that stand for matmuls, and its names of the matmul's axes by role. */
export interface Accumulated extends Derived {
  readonly accumulators: readonly string[]
  readonly named: ReadonlyMap<string, string>
  /** Of one that reduces rows: how. */
  readonly reduced?: ReducedRows
}

/** Simplifies an index that is computed back and forth, such as the end of a row reversed twice. */
function plainPlace(place: Expr): Expr {
  if (place.kind !== 'call') return place
  const { terms, constant } = linearOf(place)
  const [term, ...more] = terms.values()
  return term !== undefined && more.length === 0 && term.factor === 1 && constant === 0 ? term.expr : place
}

/** The program with rows inlined where they are read: elements of a chunk are computed one by one. */
export function withoutRows(kernel: Kernel): Kernel {
  const rows = new Map(kernel.body.flatMap((stmt) => (stmt.kind === 'row' ? [[stmt.name, stmt] as const] : [])))
  const written = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      const row = node.kind === 'element' ? rows.get(node.row) : undefined
      return node.kind !== 'element' || row === undefined
        ? node
        : substitute(written(row.value), new Map([[row.index, node.index]]))
    })
  const plain = (expr: Expr): Expr =>
    rewrite(expr, (node) => (node.kind === 'load' ? { ...node, indices: node.indices.map(plainPlace) } : node))
  const body = kernel.body.filter(({ kind }) => kind !== 'row')
  return { ...kernel, body: body.map((stmt) => mapStmt(stmt, (expr) => plain(written(expr)))) }
}

/**
 * The program with reductions of other tensors as scalars of a row, such as a scale that follows from the stored maxima of its columns: they are
 * known before the matmuls are. A reduction of a matmul's own row stays, and is refused.
 */
export function foldedScalars(kernel: Kernel, accumulators: readonly string[]): Kernel {
  const ofProducts = new Set(accumulators)
  const reads = (expr: Expr): boolean => {
    let found = false
    visit(expr, (node) => {
      found ||= node.kind === 'load' ? ofProducts.has(node.tensor) : node.kind === 'local' && ofProducts.has(node.name)
    })
    return found
  }
  const body = kernel.body.map((stmt): Stmt => {
    if (stmt.kind === 'let' && reads(stmt.value)) ofProducts.add(stmt.name)
    if (stmt.kind !== 'reduce') return stmt
    const { name, type, monoid, length, index: at, value } = stmt
    if (!reads(value))
      return { kind: 'let', name, type, value: renameLoops({ kind: 'fold', type, monoid, length, index: at, value }) }
    ofProducts.add(name)
    return stmt
  })
  return { ...kernel, body }
}

/**
 * The program with a dimension of its own for the columns of a square matmul, such as `x x^T`. Ops with one name for both of its axes state that
 * they have equal extents; rows and columns of a main loop are still two.
 */
export function ownColumns(kernel: Kernel, accumulators: readonly string[]): Kernel {
  const { dims = [] } = kernel.tensors.find(({ name }) => accumulators.includes(name)) ?? {}
  const both = dims.at(-1)
  if (both === undefined || dims.indexOf(both) === dims.length - 1) return kernel
  let columns = `${both}_columns`
  while (kernel.dims.includes(columns)) columns = `${columns}_`
  const isSquare = ({ dims: own }: TensorParam): boolean => own.at(-1) === both && own.indexOf(both) < own.length - 1
  return {
    ...kernel,
    dims: [...kernel.dims, columns],
    tensors: kernel.tensors.map((tensor) => {
      if (!isSquare(tensor)) return tensor
      const own = [...tensor.dims.slice(0, -1), columns]
      return { ...tensor, dims: own, layout: tensor.layout.name === 'row' ? rowMajor(own) : tensor.layout }
    }),
    body: kernel.body.map((stmt) => (stmt.kind === 'storeRow' ? { ...stmt, length: dim(columns) } : stmt)),
  }
}

/** @throws usage `plan.illegal` for a program that is not elementwise in the matmuls, at (row, column) or in an adjacent column */
export function checkEpilogue(
  epilogue: Kernel,
  group: string,
  {
    first,
    last,
    out,
    accumulators,
  }: { readonly first: string; readonly last: string; readonly out: readonly string[]; readonly accumulators: readonly string[] },
): void {
  const refuse = (reason: string) => illegal(group, first, last, reason)
  if (!isElementwise(epilogue))
    throw refuse(
      'an epilogue works on each element of the matmul by itself, row by row: a reduction of a row of the matmul needs a kernel of its own',
    )
  for (const accumulator of accumulators) {
    const { dims = [] } = epilogue.tensors.find(({ name }) => name === accumulator) ?? {}
    const columns = dims.at(-1)
    const rows = epilogue.rows.map((row) => row.dim)
    if (dims.length !== out.length)
      throw refuse(
        `the epilogue sees "${out.join(' ')}" in other parts, as "${dims.join(' ')}": a main loop has rows and columns`,
      )
    if (columns === undefined || rows.length !== dims.length - 1 || !dims.slice(0, -1).every((axis) => rows.includes(axis)))
      throw refuse('an epilogue works on each element of the matmul by itself, row by row: its results have other rows')
    const bound = epilogue.rows.map((row) => [row.dim, row.index] as const)
    for (const stmt of epilogue.body) {
      if (stmt.kind === 'store') throw refuse(`${stmt.tensor} has one element per row, and an epilogue runs for each column`)
      if (stmt.kind === 'storeRow' && !(stmt.length.kind === 'dim' && stmt.length.name === columns))
        throw refuse(
          holdsFold(stmt.value)
            ? `${stmt.tensor} is not a plain reduction over ${partColumns} columns each, from a multiple of ${partColumns} on, as partials of a row are`
            : `${stmt.tensor} runs along another axis than the columns of the matmul`,
        )
      checkReads(epilogue, stmt, accumulator, [...dims.slice(0, -1).map((axis) => new Map(bound).get(axis) ?? '')], refuse)
    }
  }
}

function holdsFold(expr: Expr): boolean {
  let found = false
  visit(expr, ({ kind }) => {
    found ||= kind === 'fold'
  })
  return found
}

/** Refuses loads of a matmul at another row, or at a column that another thread may hold. */
function checkReads(
  epilogue: Kernel,
  stmt: Kernel['body'][number],
  accumulator: string,
  rows: readonly string[],
  refuse: (reason: string) => Error,
): void {
  let partners = false
  visitKernel({ ...epilogue, body: [stmt] }, (expr) => {
    if (expr.kind !== 'load' || expr.tensor !== accumulator) return
    const at = expr.indices.at(-1)
    if (stmt.kind !== 'storeRow' || at === undefined || !rows.every((row, i) => equalExprs(expr.indices[i], index(row))))
      throw refuse('the epilogue of an element reads another row of the matmul')
    partners ||= !equalExprs(at, index(stmt.index))
  })
  const isOwn = (load: ExprOf<'load'>): boolean => load.tensor === accumulator
  if (partners && stmt.kind === 'storeRow' && !stmtExprs(stmt).every((expr) => readsInChunk(expr, stmt.index, isOwn)))
    throw refuse(
      'the epilogue of an element reads another element of the matmul, which is not always in the same aligned eight columns',
    )
}

/** The epilogue of a bare matmul, which is stored unchanged. */
export function bareEpilogue(
  graph: Graph,
  name: string,
  { name: node, out }: NodeOf<'matmul'>,
  roles: Roles,
  layouts: LayoutsByName,
): Accumulated {
  const { dtype, shape, layout } = valueAt(graph.values, out)
  const dims = roles.axes.out
  const rows = [...roles.batch, 'm']
  const stored = layoutOver(layout, dims, layouts)
  if (stored === undefined) throw illegal(name, node, node, `its result is in layout ${layout}, which is not declared`)
  const product: TensorParam = { name: 'x', access: 'in', dtype, dims: [...rows, 'n'], layout: rowMajor([...rows, 'n']) }
  const result: TensorParam = { name: 'y', access: 'out', dtype, dims, layout: stored }
  const at = (axis: string) => index(`i_${axis}`)
  const type = typeof dtype === 'string' ? dtypeInfo[dtype].scalar : 'f32'
  const store: StmtOf<'storeRow'> = {
    kind: 'storeRow',
    tensor: 'y',
    rows: dims.slice(0, -1).map(at),
    length: dim('n'),
    index: 'c',
    value: { kind: 'load', type, tensor: 'x', indices: [...rows.map(at), index('c')] },
  }
  const kernel: Kernel = {
    name,
    source: { file: graph.name, line: 1, column: 1 },
    dims: [...rows, 'n'],
    types: typeof dtype === 'string' ? {} : { [dtype.param]: floatTypes },
    attrs: [],
    tensors: [product, result],
    rows: rows.map((axis) => ({ index: `i_${axis}`, dim: axis })),
    body: [store],
  }
  const binding = (param: string) => [{ param, value: out, shape }]
  return {
    kernel,
    inputs: binding('x'),
    outputs: binding('y'),
    attrs: {},
    accumulators: ['x'],
    named: new Map(dims.map((axis) => [axis, axis])),
  }
}
