/**
 * Full reductions of a tensor. With one team per row, all but one block would idle if there is one row, and a reduction of reductions would run its
 * inner loop serially. Such a kernel becomes a program of totals: nested loops form one walk, whose chunks are distributed over blocks. The
 * last block to end combines the results of all in ascending order. The number of blocks follows from the number of chunks alone. Found before a kernel
 * is brought into normal form.
 *
 *     top = max(r < m: max(c < n: x[r, c])); y[] = top    chunks x[r, c .. c + 3] of all rows, largest by blocks, largest of those
 */
import { i32, index as indexVar } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { RowAxis, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, mapStmt, stmtExprs, visit } from '../../ir/walk.js'
import { type ChunkAccess, chunkAccess } from '../access/chunk_access.js'
import { isHostExpr } from '../normalise/host_expr.js'
import type { Loop } from '../normalise/normal.js'
import { contains, sameExpr, substituteDims, substituteIndex } from '../normalise/rewrite.js'
import { isSimple } from './column_rows.js'
import type { ChunkLoad, DividedPass, TotalProgram } from './divided_program.js'
import { isReduction, type Reduction, resultsOf } from './reduction.js'

/** A program of totals, with the axes over which there are separate totals, and the number of elements per chunk. */
export interface Totals {
  readonly axes: readonly RowAxis[]
  readonly vec: number
  readonly program: TotalProgram
}

/** Bytes per access, and the maximum number of elements per chunk. */
const packBytes = 16
const mostElements = 8
/** Tensors that are known to have fewer elements are not worth several blocks. */
const fewestElements = 4096

/**
 * The kernel as a program of totals; undefined if it is none, or if there is no gain.
 * @param rows `long` for rows along one loop that are worth several blocks; others have teams of their own
 */
export function totalsOf({ kernel, dims, types }: Instance, rows: 'any' | 'long' = 'any'): Totals | undefined {
  if (isUpdating(kernel)) return undefined
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = kernel.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed))).filter(isSimple)
  if (body.length !== kernel.body.length) return undefined
  const nests = body.flatMap((s) => (isReduction(s) ? [nestOf(s)] : []))
  const [first] = nests
  if (first === undefined || nests.some((nest) => !haveOneWalk(nest, first))) return undefined
  if (rows === 'any' && kernel.rows.length > 0 && first.loops.length === 1) return undefined
  const elements = first.loops.reduce((all, { length }) => all * (length.kind === 'const' ? Number(length.value) : Number.NaN), 1)
  if (elements < fewestElements) return undefined
  const results = new Set(nests.flatMap(({ stmt }) => resultsOf(stmt).map(({ name }) => name)))
  const before: StmtOf<'let'>[] = []
  const after: (StmtOf<'let'> | StmtOf<'store'>)[] = []
  for (const s of body) {
    if (s.kind === 'let' && ![...freeNames(s.value)].some((name) => results.has(name))) before.push(s)
    else if (s.kind === 'let' || s.kind === 'store') after.push(s)
    if (s.kind === 'let' && after.includes(s)) results.add(s.name)
  }
  const values = nests.map((nest) => nest.values.map((value) => overLoops(value, nest.loops, first.loops)))
  if (values.flat().some((value) => [...freeNames(value)].some((name) => results.has(name)))) return undefined
  const accessAlong = (loop: Loop | undefined): ChunkAccess =>
    chunkAccess(
      kernel,
      { index: loop?.index ?? '', dim: loop?.length.kind === 'dim' ? loop.length.name : undefined },
      first.loops,
      { dims, types },
    )
  const loops = innermostLast(first.loops, values.flat(), accessAlong(first.loops[0]))
  const inner = loops.at(-1)
  const chunked = inChunks(values, accessAlong(inner), inner?.index ?? '')
  const reductions = nests.map(({ stmt }, i) => ({ stmt, values: chunked.values[i] ?? [] }))
  const pass: DividedPass = { kind: 'pass', loops, loads: chunked.loads, reductions }
  const known = needed(before, [
    ...reductions.flatMap((each) => each.values),
    ...after.flatMap(stmtExprs),
    ...chunked.loads.map(({ load }) => load),
  ])
  return { axes: kernel.rows, vec: chunked.vec, program: { kind: 'totals', sequence: [...known, pass, ...after] } }
}

/** Scalars that the expressions read, directly or through other scalars. */
function needed(lets: readonly StmtOf<'let'>[], exprs: readonly Expr[]): readonly StmtOf<'let'>[] {
  const read = new Set(exprs.flatMap((e) => [...freeNames(e)]))
  for (const { name, value } of [...lets].reverse()) if (read.has(name)) for (const other of freeNames(value)) read.add(other)
  return lets.filter(({ name }) => read.has(name))
}

export interface Nest {
  readonly stmt: Reduction
  readonly loops: readonly Loop[]
  readonly values: readonly Expr[]
}

/** Loops of a nested reduction with one monoid at all levels, and the values that the innermost loop combines. */
export function nestOf(stmt: Reduction): Nest {
  const loops: Loop[] = [{ index: stmt.index, length: stmt.length }]
  if (stmt.kind === 'merge') return { stmt, loops, values: stmt.values }
  let { value } = stmt
  // A place within one row is not comparable with places in other rows.
  const isPlaced = stmt.monoid === 'argmax' || stmt.monoid === 'argmin'
  while (!isPlaced && value.kind === 'fold' && value.monoid === stmt.monoid && isHostExpr(value.length)) {
    loops.push({ index: value.index, length: value.length })
    value = value.value
  }
  return { stmt, loops, values: [value] }
}

const haveOneWalk = ({ loops }: Nest, first: Nest): boolean =>
  loops.length === first.loops.length &&
  loops.every(({ length }, i) => {
    const other = first.loops[i]
    return isHostExpr(length) && other !== undefined && sameExpr(length, other.length)
  })

const overLoops = (value: Expr, own: readonly Loop[], loops: readonly Loop[]): Expr =>
  own.reduce((made, { index }, i) => substituteIndex(made, index, indexVar(loops[i]?.index ?? index)), value)

/** Moves the loop along which most loads are contiguous to the end: sums and maxima may be computed in any order. */
function innermostLast(loops: readonly Loop[], values: readonly Expr[], of: ChunkAccess): readonly Loop[] {
  const counts = loops.map(({ index }) => {
    let count = 0
    for (const value of values)
      visit(value, (node) => {
        if (node.kind === 'load' && of.along(node, index).kind === 'contiguous') count++
      })
    return count
  })
  const last = counts.lastIndexOf(Math.max(...counts))
  return [...loops.filter((_, i) => i !== last), ...loops.filter((_, i) => i === last)]
}

/** Turns contiguous loads along the innermost loop into chunks of as many elements as fill an access of the smallest type. */
function inChunks(
  values: readonly (readonly Expr[])[],
  { chunked, along }: ChunkAccess,
  index: string,
): { readonly values: readonly (readonly Expr[])[]; readonly loads: readonly ChunkLoad[]; readonly vec: number } {
  const loads: ChunkLoad[] = []
  const isFree = (load: Expr): boolean => !contains(load, ({ kind }) => kind === 'fold')
  const made = values.map((each) => each.map((value) => chunked(value, loads, isFree)))
  const runs = loads.map(({ load }) => {
    const moves = along(load, index)
    return moves.kind === 'contiguous' ? moves.run : 1
  })
  const bytes = loads.map(({ dtype }) => dtypeInfo[dtype].bytes)
  let vec = bytes.length === 0 ? 1 : Math.min(mostElements, packBytes / Math.min(...bytes))
  while (runs.some((run) => run % vec !== 0 && Number.isFinite(run))) vec /= 2
  return vec === 1 ? { values, loads: [], vec } : { values: made, loads, vec }
}
