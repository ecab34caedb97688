/**
 * Reductions across rows. Where neighbours of a row axis lie side by side in memory and neighbours of a reduction do not, a team a row would
 * read one element of every sector it asks for. Such a kernel is a column program instead: a thread owns a chunk of neighbouring columns,
 * threads of a block divide the rows, and from sm_90 the blocks of a cluster do. Found before a kernel is brought into normal form.
 *
 *     for c: top = sum(r < m: x[r, c]); y[c] = top          a thread: chunks x[r, c .. c + 3] of its rows r, four sums
 *     y[c] = sum(r < m: x[r, c]) for c < n                  the same
 */
import { dim as dimVar, i32, index as indexVar } from '../ir/build.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { type Expr, type ExprOf, inPlaceOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf, TensorParam } from '../ir/kernel.js'
import { own } from '../ir/own.js'
import { freeNames, introducedNames, mapStmt, stmtExprs } from '../ir/walk.js'
import { classify, offsetOf } from './access.js'
import { acrossElements } from './across_elements.js'
import { chosen, conditionOf } from './column_condition.js'
import { isHostExpr } from './host_expr.js'
import { freshName, type Loop } from './normal.js'
import { contains, rewritePaths, sameExpr, substituteDims, substituteIndex, usesIndex } from './rewrite.js'

/** Consecutive columns of one row, read as a chunk. */
export interface ColumnLoad {
  readonly name: string
  readonly load: ExprOf<'load'>
  readonly dtype: DType
  /** Rows lie one behind the other, so that all chunks are full and aligned where the first is and rows are multiples of a chunk. */
  readonly isWhole: boolean
}

/** A reduction of every column. */
export interface ColumnReduction {
  readonly name: string
  readonly type: Expr['type']
  readonly monoid: StmtOf<'reduce'>['monoid']
  /** Of an element; its loads of columns are elements of rows that have the names of the loads. */
  readonly value: Expr
}

export interface ColumnPass {
  readonly kind: 'pass'
  readonly loop: Loop
  readonly loads: readonly ColumnLoad[]
  readonly reductions: readonly ColumnReduction[]
  /** Of a row: where it does not hold, the row is not loaded and counts nothing. It is the same for all columns. */
  readonly when?: Expr
}

/** A step of a column program: a walk over the rows, or what is computed once a column. */
export type ColumnStep = ColumnPass | StmtOf<'let'> | StmtOf<'store'>

export interface ColumnProgram {
  readonly kind: 'columns'
  /** The axis a chunk runs along. */
  readonly column: RowAxis
  /** Its extent. */
  readonly length: Expr
  /** Parts the rows are dealt out to: what a thread adds up apart, or the blocks of a cluster. It fixes the order of combination. */
  readonly parts: number
  readonly sequence: readonly ColumnStep[]
}

/** A column program with the axes a tile of columns is an element of, and the columns of a chunk. */
export interface Columns {
  /** What the program computes, as the IR has it. */
  readonly kernel: Kernel
  readonly axes: readonly RowAxis[]
  readonly vec: number
  readonly program: ColumnProgram
}

/** The names a column program gives, in order. */
export const columnProgramNames = ({ sequence }: Pick<ColumnProgram, 'sequence'>): readonly string[] =>
  sequence.flatMap((step) => {
    if (step.kind === 'let') return [step.name]
    if (step.kind === 'store') return []
    return [step.loop.index, ...step.loads.map(({ name }) => name), ...step.reductions.map(({ name }) => name)]
  })

/** Bytes of one access, and the most and fewest columns worth a chunk. */
const packBytes = 16
const mostColumns = 8
const fewestColumns = 4
/**
 * The axes of columns and of the matrices they are of. Where there are more (windows of a convolution), elements are many and what each
 * combines is few: a thread an element reads neighbours together as well, and nobody waits.
 */
const mostAxes = 2
/** Fewer rows, where that is known, are not worth dividing. */
const fewestRows = 64
/** Partial results that a thread may hold in registers, and the most parts. */
const heldValues = 64
const mostParts = 8

type Simple = StmtOf<'let'> | StmtOf<'store'> | StmtOf<'reduce'>

/** The kernel as a column program; undefined where it is none, or gains nothing. */
export function columnsOf({ kernel: given, dims, types }: Instance): Columns | undefined {
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const substituted = given.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed)))
  const kernel = acrossElements({ ...given, body: substituted }) ?? { ...given, body: substituted }
  if (readsReplaced(kernel)) return undefined
  const body = kernel.body.filter(isSimple)
  const reductions = body.filter((s): s is StmtOf<'reduce'> => s.kind === 'reduce')
  const [first] = reductions
  if (first === undefined || body.length !== kernel.body.length || !isHostExpr(first.length)) return undefined
  if (reductions.some(({ length }) => !sameExpr(length, first.length))) return undefined
  if (kernel.rows.length > mostAxes || (first.length.kind === 'const' && Number(first.length.value) < fewestRows))
    return undefined
  const loop: Loop = { index: first.index, length: first.length }
  for (const column of [...kernel.rows].reverse()) {
    const made = programOver(column, loop, body, kernel, { dims, types })
    if (made !== undefined) return made
  }
  return undefined
}

/** Whether more than the stores reads what is replaced in place: all threads of a column compute the rest. */
const readsReplaced = ({ tensors, body }: Kernel): boolean =>
  tensors.some(({ updates }) =>
    body.some(
      (s) =>
        s.kind !== 'store' &&
        s.kind !== 'storeRow' &&
        stmtExprs(s).some((e) => contains(e, (node) => node.kind === 'load' && node.tensor === updates)),
    ),
  )

const isSimple = (s: Stmt): s is Simple => s.kind === 'let' || s.kind === 'reduce' || (s.kind === 'store' && s.when === undefined)

function programOver(
  column: RowAxis,
  loop: Loop,
  body: readonly Simple[],
  kernel: Kernel,
  { dims, types }: Pick<Instance, 'dims' | 'types'>,
): Columns | undefined {
  const tensor = (name: string): TensorParam | undefined => kernel.tensors.find((t) => t.name === name)
  const along = (load: ExprOf<'load'>, index: string) => {
    const found = tensor(load.tensor)
    return found === undefined ? undefined : classify(offsetOf(found, load.indices, dims), index)
  }
  const known = own(dims, column.dim)
  const extents = new Map([
    ...kernel.rows.map((row) => [row.index, row.dim] as const),
    ...(loop.length.kind === 'dim' ? [[loop.index, loop.length.name] as const] : []),
  ])
  /** A load that may be made wherever it is written: each index is a variable that runs over just that dimension. */
  const inBounds = (load: ExprOf<'load'>): boolean =>
    load.indices.every((at, i) => at.kind === 'index' && extents.get(at.name) === tensor(load.tensor)?.dims[i])
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const s of kernel.body) for (const name of introducedNames(s)) taken.add(name)
  for (const row of kernel.rows) taken.add(row.index)

  const loads: ColumnLoad[] = []
  let isScattered = false
  const chunked = (value: Expr): Expr =>
    rewritePaths(value, (node, always) => {
      if (node.kind !== 'load') return undefined
      const moves = along(node, column.index)
      if (moves?.kind === 'gather' || moves === undefined) isScattered ||= usesIndex(node, loop.index)
      const bound = contains(node, ({ kind }) => kind === 'local' || kind === 'element' || kind === 'fold')
      if (moves?.kind !== 'contiguous' || moves.run % fewestColumns > 0 || bound || !(always || inBounds(node))) return undefined
      if (!usesIndex(node, loop.index)) return undefined
      const same = loads.find((each) => sameExpr(each.load, node))
      const name = same?.name ?? freshName(`${node.tensor}_${column.index}`, taken)
      if (same === undefined) loads.push(loadOf(name, node))
      return inPlaceOf(node, { kind: 'element', type: node.type, row: name, index: indexVar(column.index) })
    })
  const loadOf = (name: string, load: ExprOf<'load'>): ColumnLoad => {
    const found = tensor(load.tensor)
    if (found === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${load.tensor}`)
    const last = load.indices.at(-1)
    const isWhole =
      found.layout.name === 'row' &&
      last?.kind === 'index' &&
      last.name === column.index &&
      found.dims.at(-1) === column.dim &&
      load.indices.slice(0, -1).every((at) => !usesIndex(at, column.index))
    return { name, load, dtype: resolveDType(found.dtype, types), isWhole }
  }

  const reduced = body.flatMap((s) =>
    s.kind === 'reduce' ? [{ s, value: substituteIndex(s.value, s.index, indexVar(loop.index)) }] : [],
  )
  const when = conditionOf(reduced, column.index, loop.index)
  const reductions = reduced.map(({ s, value }) => ({
    s,
    value: chunked(when === undefined ? value : (chosen(s, value)?.value ?? value)),
  }))
  if (loads.length === 0 || isScattered) return undefined
  // Where neighbours of the reduction lie side by side too, rows are the better teams.
  if (loads.some(({ load }) => along(load, loop.index)?.kind === 'contiguous')) return undefined
  const runs = loads.flatMap(({ load }) => {
    const moves = along(load, column.index)
    return moves?.kind === 'contiguous' && Number.isFinite(moves.run) ? [moves.run] : []
  })
  let vec = Math.min(mostColumns, packBytes / Math.min(...loads.map(({ dtype }) => dtypeInfo[dtype].bytes)))
  while (runs.some((run) => run % vec !== 0)) vec /= 2
  if (vec < fewestColumns) return undefined
  let parts = mostParts
  while (parts > 1 && parts * vec * Math.max(reductions.length, loads.length) > heldValues) parts /= 2
  const sequence = inLevels(
    body,
    reductions.map(({ s, value }) => ({ name: s.name, type: s.type, monoid: s.monoid, value })),
    loads,
    loop,
    when,
  )
  const length = known === undefined ? dimVar(column.dim) : i32(known)
  return {
    kernel,
    axes: kernel.rows.filter((row) => row !== column),
    vec,
    program: { kind: 'columns', column, length, parts, sequence },
  }
}

/** Reductions that wait for no other share a walk over the rows; what is computed of their results stands behind it. */
function inLevels(
  body: readonly Simple[],
  reductions: readonly ColumnReduction[],
  loads: readonly ColumnLoad[],
  loop: Loop,
  when: Expr | undefined,
): ColumnStep[] {
  const levels = new Map<string, number>()
  const levelOf = (exprs: readonly Expr[]): number =>
    Math.max(0, ...exprs.flatMap((e) => [...freeNames(e)].map((name) => levels.get(name) ?? 0)))
  const walks = new Map<number, ColumnReduction[]>()
  const once = new Map<number, (StmtOf<'let'> | StmtOf<'store'>)[]>()
  for (const s of body) {
    if (s.kind === 'reduce') {
      const reduction = reductions.find(({ name }) => name === s.name)
      if (reduction === undefined) throw new Error(`internal: no reduction ${s.name}`)
      const level = levelOf([reduction.value])
      walks.set(level, [...(walks.get(level) ?? []), reduction])
      levels.set(s.name, level + 1)
    } else {
      const level = levelOf(s.kind === 'let' ? [s.value] : [...s.indices, s.value])
      once.set(level, [...(once.get(level) ?? []), s])
      if (s.kind === 'let') levels.set(s.name, level)
    }
  }
  const last = Math.max(0, ...walks.keys(), ...once.keys())
  return Array.from({ length: last + 1 }, (_, level): ColumnStep[] => {
    const together = walks.get(level) ?? []
    const read = loads.filter(({ name }) => together.some(({ value }) => reads(value, name)))
    const pass: ColumnPass = { kind: 'pass', loop, loads: read, reductions: together, ...(when === undefined ? {} : { when }) }
    return [...(once.get(level) ?? []), ...(together.length > 0 ? [pass] : [])]
  }).flat()
}

const reads = (value: Expr, row: string): boolean => contains(value, (node) => node.kind === 'element' && node.row === row)
