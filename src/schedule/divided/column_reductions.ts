/**
 * Reductions across rows. If a row axis is contiguous in memory and the reduced axis is not, one team per row would use one element per 32-byte
 * sector (uncoalesced). Such a kernel is a column program instead: a thread owns a chunk of neighbouring columns,
 * threads of a block divide the rows, and from sm_90 the blocks of a cluster do. Found before a kernel is brought into normal form.
 *
 *     for c: top = sum(r < m: x[r, c]); y[c] = top          a thread: chunks x[r, c .. c + 3] of its rows r, four sums
 *     y[c] = sum(r < m: x[r, c]) for c < n                  the same
 *     y[r, c] = x[r, c] / sum(q < m: x[q, c])               the same, and a walk after it that stores the rows (column_rows.ts)
 *
 * Reductions by an author's monoid, such as Welford's, are reductions like any other: they may combine rows in any order (reduction.ts).
 */
import { dim as dimVar, i32, index as indexVar } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis } from '../../ir/kernel.js'
import { mapStmt, stmtExprs } from '../../ir/walk.js'
import type { Access } from '../access/access.js'
import { chunkAccess } from '../access/chunk_access.js'
import { isHostExpr } from '../normalise/host_expr.js'
import type { Loop } from '../normalise/normal.js'
import { contains, sameExpr, substituteDims, substituteIndex, usesIndex } from '../normalise/rewrite.js'
import { acrossElements } from './across_elements.js'
import { chosen, conditionOf } from './column_condition.js'
import { inLevels } from './column_levels.js'
import { fewestColumns, loadsOfPart, partsOf, widthWithRoom } from './column_room.js'
import { isSimple, type Simple, walkedRows } from './column_rows.js'
import type { ChunkLoad, ColumnProgram } from './divided_program.js'
import { isReduction, type Reduced, valuesOf } from './reduction.js'

/** A column program with the axes a tile of columns is an element of, and the columns of a chunk. */
export interface Columns {
  /** The kernel that the program computes. */
  readonly kernel: Kernel
  readonly axes: readonly RowAxis[]
  readonly vec: number
  readonly program: ColumnProgram
}

/** Bytes of one access, and the most and fewest columns worth a chunk. */
const packBytes = 16
const mostColumns = 8
/**
 * Axes of columns and of matrices. A kernel with more (windows of a convolution) has many elements with few operands each: with one thread per
 * element, reads are coalesced as well, and no thread waits.
 */
const mostAxes = 2
/** Fewer rows, where that is known, are not worth dividing. */
const fewestRows = 64

/** The kernel as a column program; undefined where it is none, or gains nothing. */
export function columnsOf({ kernel: given, dims, types }: Instance): Columns | undefined {
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const kernel = { ...given, body: given.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed))) }
  const walked = walkedRows(kernel)
  const stored = walked === undefined ? undefined : programOf(walked.kernel, walked.axis, { dims, types })
  return stored ?? programOf(acrossElements(kernel) ?? kernel, undefined, { dims, types })
}

/** @param walked the axis of rows that are stored after the reductions */
function programOf(kernel: Kernel, walked: RowAxis | undefined, of: Pick<Instance, 'dims' | 'types'>): Columns | undefined {
  if (readsReplaced(kernel)) return undefined
  const body = kernel.body.filter(isSimple)
  const reductions = body.filter(isReduction)
  const [first] = reductions
  if (first === undefined || body.length !== kernel.body.length || !isHostExpr(first.length)) return undefined
  if (reductions.some(({ length }) => !sameExpr(length, first.length))) return undefined
  const isShort = first.length.kind === 'const' && Number(first.length.value) < fewestRows
  if (walked === undefined && (kernel.rows.length > mostAxes || isShort)) return undefined
  const loop: Loop = { index: first.index, length: first.length }
  for (const column of [...kernel.rows].reverse()) {
    const made = column === walked ? undefined : programOver(column, walked, loop, body, kernel, of)
    if (made !== undefined) return made
  }
  return undefined
}

/** True if more than the stores reads what is replaced in place: all threads of a column compute the rest. */
const readsReplaced = ({ tensors, body }: Kernel): boolean =>
  tensors.some(({ updates }) =>
    body.some(
      (s) =>
        s.kind !== 'store' &&
        s.kind !== 'storeRow' &&
        stmtExprs(s).some((e) => contains(e, (node) => node.kind === 'load' && node.tensor === updates)),
    ),
  )

/** @param loop of the reductions; @param walked as in `programOf` */
function programOver(
  column: RowAxis,
  walked: RowAxis | undefined,
  loop: Loop,
  body: readonly Simple[],
  kernel: Kernel,
  of: Pick<Instance, 'dims' | 'types'>,
): Columns | undefined {
  const extentOf = ({ dim }: RowAxis): Expr => {
    const known = getOwn(of.dims, dim)
    return known === undefined ? dimVar(dim) : i32(known)
  }
  const access = chunkAccess(kernel, column, [loop], of)
  let isScattered = false
  /** Loads of columns that differ from row to row. Others read rows at places that columns do not share. */
  const mayChunk =
    (row: string) =>
    (load: ExprOf<'load'>, moves: Access): boolean => {
      if (moves.kind === 'gather') isScattered ||= usesIndex(load, row)
      const bound = contains(load, ({ kind }) => kind === 'local' || kind === 'element' || kind === 'fold')
      return moves.kind === 'contiguous' && !(moves.run % fewestColumns > 0) && !bound && usesIndex(load, row)
    }
  const reduced = body.filter(isReduction).map((stmt): Reduced => {
    const values = valuesOf(stmt).map((value) => substituteIndex(value, stmt.index, indexVar(loop.index)))
    return { stmt, values }
  })
  const when = conditionOf(reduced, column.index, loop.index)
  const loads: ChunkLoad[] = []
  const reductions = reduced.map((each): Reduced => {
    const counted = when === undefined ? each.values : (chosen(each)?.values ?? each.values)
    return { stmt: each.stmt, values: counted.map((value) => access.chunked(value, loads, mayChunk(loop.index))) }
  })
  if (loads.length === 0 || isScattered) return undefined
  // If the reduced axis is contiguous too, teams per row are better.
  if (loads.some(({ load }) => access.along(load, loop.index).kind === 'contiguous')) return undefined
  const rows = walked && { index: walked.index, length: extentOf(walked) }
  const stored = rows && storesOf(body, rows, (value, into) => access.chunked(value, into, mayChunk(rows.index)))
  const all = [...loads, ...(stored?.loads ?? [])]
  const runs = all.flatMap(({ load }) => {
    const moves = access.along(load, column.index)
    return moves.kind === 'contiguous' && Number.isFinite(moves.run) ? [moves.run] : []
  })
  let widest = Math.min(mostColumns, packBytes / Math.min(...all.map(({ dtype }) => dtypeInfo[dtype].bytes)))
  while (runs.some((run) => run % widest !== 0)) widest /= 2
  const once = stored === undefined ? body : body.filter(({ kind }) => kind !== 'store')
  const steps = inLevels({ body: once, reductions, loads, loop, when })
  const vec = widthWithRoom(steps, widest)
  if (vec === undefined) return undefined
  const stores = stored && { ...stored, stores: stored.stores.map((store) => access.stored(store, vec)) }
  const sequence = stores === undefined ? steps : [...steps, stores]
  const parts = partsOf(sequence, vec)
  const each = loadsOfPart(sequence, parts)
  const axes = kernel.rows.filter((row) => row !== column && row !== walked)
  return { kernel, axes, vec, program: { kind: 'columns', column, length: extentOf(column), parts, each, sequence } }
}

/** The walk that stores rows, before it is known how many columns a chunk has. */
function storesOf(body: readonly Simple[], loop: Loop, chunked: (value: Expr, loads: ChunkLoad[]) => Expr) {
  const loads: ChunkLoad[] = []
  const stores = body.flatMap((s) => (s.kind === 'store' ? [{ ...s, value: chunked(s.value, loads) }] : []))
  return { kind: 'stores' as const, loops: [loop], loads, stores }
}
