/**
 * Full reductions of a tensor. With one team per row, all but one block would idle if there is one row, and a reduction of reductions would run its
 * inner loop serially. Such a kernel becomes a program of totals: nested loops form one walk, whose chunks are distributed over blocks. The
 * last block to end combines the results of all in ascending order. The number of blocks follows from the number of chunks alone. Found before a kernel
 * is brought into normal form.
 *
 *     top = max(r < m: max(c < n: x[r, c])); y[] = top    chunks x[r, c .. c + 3] of all rows, largest by blocks, largest of those
 */
import { i32, index as indexVar } from '../ir/build.js'
import { dtypeInfo } from '../ir/dtype.js'
import { type Expr, type ExprOf, inPlaceOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import type { Kernel, RowAxis, StmtOf, TensorParam } from '../ir/kernel.js'
import { isUpdating } from '../ir/update.js'
import { freeNames, introducedNames, mapStmt } from '../ir/walk.js'
import { classify, offsetOf } from './access.js'
import type { ColumnLoad } from './column_program.js'
import { isHostExpr } from './host_expr.js'
import { freshName, type Loop } from './normal.js'
import { isReduction, type Reduced, type Reduction, resultsOf } from './reduction.js'
import { contains, rewritePaths, sameExpr, substituteDims, substituteIndex } from './rewrite.js'

/** Elements of one chunk of a row of the innermost loop. */
export type TotalLoad = ColumnLoad

/** A reduced statement, with `values` over the loops of the walk. */
export type Total = Reduced

export interface TotalProgram {
  readonly kind: 'totals'
  /** Outermost first; chunks lie along the last. */
  readonly loops: readonly Loop[]
  /** Scalars known before the walk. */
  readonly before: readonly StmtOf<'let'>[]
  readonly loads: readonly TotalLoad[]
  readonly totals: readonly Total[]
  /** Statements over the totals. */
  readonly after: readonly (StmtOf<'let'> | StmtOf<'store'>)[]
}

/** A program of totals, with the axes over which there are separate totals, and the number of elements per chunk. */
export interface Totals {
  readonly axes: readonly RowAxis[]
  readonly vec: number
  readonly program: TotalProgram
}

/** Names that a program of totals introduces, in order. */
export const totalProgramNames = ({ loops, before, loads, totals, after }: TotalProgram): readonly string[] => [
  ...before.map(({ name }) => name),
  ...loops.map(({ index }) => index),
  ...loads.map(({ name }) => name),
  ...totals.flatMap(({ stmt }) => resultsOf(stmt).map(({ name }) => name)),
  ...after.flatMap((s) => (s.kind === 'let' ? [s.name] : [])),
]

/** Bytes per access, and the maximum number of elements per chunk. */
const packBytes = 16
const mostElements = 8
/** Tensors that are known to have fewer elements are not worth several blocks. */
const fewestElements = 4096

type Simple = StmtOf<'let'> | StmtOf<'store'> | Reduction

/** The kernel as a program of totals; undefined if it is none, or if there is no gain. */
export function totalsOf({ kernel, dims, types }: Instance): Totals | undefined {
  if (isUpdating(kernel)) return undefined
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = kernel.body.map((s) => mapStmt(s, (e) => substituteDims(e, fixed))).filter(isSimple)
  if (body.length !== kernel.body.length) return undefined
  const nests = body.flatMap((s) => (isReduction(s) ? [nestOf(s)] : []))
  const [first] = nests
  if (first === undefined || nests.some((nest) => !haveOneWalk(nest, first))) return undefined
  // Rows that are reduced along one loop have teams of their own.
  if (kernel.rows.length > 0 && first.loops.length === 1) return undefined
  const known = first.loops.reduce((all, { length }) => all * (length.kind === 'const' ? Number(length.value) : Number.NaN), 1)
  if (known < fewestElements) return undefined
  const results = new Set(nests.flatMap(({ stmt }) => resultsOf(stmt).map(({ name }) => name)))
  const before: StmtOf<'let'>[] = []
  const after: TotalProgram['after'][number][] = []
  for (const s of body) {
    if (s.kind === 'let' && ![...freeNames(s.value)].some((name) => results.has(name))) before.push(s)
    else if (s.kind === 'let' || s.kind === 'store') after.push(s)
    if (s.kind === 'let' && after.includes(s)) results.add(s.name)
  }
  const values = nests.map((nest) => nest.values.map((value) => overLoops(value, nest.loops, first.loops)))
  if (values.flat().some((value) => [...freeNames(value)].some((name) => results.has(name)))) return undefined
  const loops = innermostLast(first.loops, values.flat(), kernel, dims)
  const chunked = inChunks(values, loops, kernel, { dims, types })
  const totals = nests.map(({ stmt }, i) => ({ stmt, values: chunked.values[i] ?? [] }))
  const program: TotalProgram = { kind: 'totals', loops, before, loads: chunked.loads, totals, after }
  return { axes: kernel.rows, vec: chunked.vec, program }
}

const isSimple = (s: Kernel['body'][number]): s is Simple =>
  s.kind === 'let' || isReduction(s) || (s.kind === 'store' && s.when === undefined)

export interface Nest {
  readonly stmt: Total['stmt']
  readonly loops: readonly Loop[]
  readonly values: readonly Expr[]
}

/** Loops of a nested reduction with one monoid at all levels, and the values that the innermost loop combines. */
export function nestOf(stmt: Total['stmt']): Nest {
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

const tensorOf = (name: string, { tensors, name: of }: Kernel): TensorParam => {
  const found = tensors.find((tensor) => tensor.name === name)
  if (found === undefined) throw new Error(`internal: ${of} has no tensor ${name}`)
  return found
}

/** Access pattern of a load along a loop. */
const along = (load: ExprOf<'load'>, index: string, kernel: Kernel, dims: Instance['dims']) =>
  classify(offsetOf(tensorOf(load.tensor, kernel), load.indices, dims), index)

/** Moves the loop along which most loads are contiguous to the end: sums and maxima may be computed in any order. */
function innermostLast(loops: readonly Loop[], values: readonly Expr[], kernel: Kernel, dims: Instance['dims']): readonly Loop[] {
  const counts = loops.map(({ index }) => {
    let count = 0
    for (const value of values)
      contains(value, (node) => {
        if (node.kind === 'load' && along(node, index, kernel, dims).kind === 'contiguous') count++
        return false
      })
    return count
  })
  const last = counts.lastIndexOf(Math.max(...counts))
  return [...loops.filter((_, i) => i !== last), ...loops.filter((_, i) => i === last)]
}

/** Turns contiguous loads along the innermost loop into chunks of as many elements as fill an access of the smallest type. */
function inChunks(
  values: readonly (readonly Expr[])[],
  loops: readonly Loop[],
  kernel: Kernel,
  { dims, types }: Pick<Instance, 'dims' | 'types'>,
): { readonly values: readonly (readonly Expr[])[]; readonly loads: readonly TotalLoad[]; readonly vec: number } {
  const inner = loops.at(-1)
  if (inner === undefined) throw new Error(`internal: ${kernel.name} walks over nothing`)
  const extents = new Map([
    ...kernel.rows.map(({ index, dim }) => [index, dim] as const),
    ...loops.flatMap(({ index, length }) => (length.kind === 'dim' ? [[index, length.name] as const] : [])),
  ])
  const inBounds = ({ indices, tensor }: ExprOf<'load'>): boolean =>
    indices.every((at, i) => at.kind === 'index' && extents.get(at.name) === tensorOf(tensor, kernel).dims[i])
  const runs: number[] = []
  const bytes: number[] = []
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const s of kernel.body) for (const name of introducedNames(s)) taken.add(name)
  for (const { index } of [...kernel.rows, ...loops]) taken.add(index)
  const loads: TotalLoad[] = []
  const chunked = (value: Expr): Expr =>
    rewritePaths(value, (node, always) => {
      if (node.kind !== 'load' || !(always || inBounds(node)) || contains(node, ({ kind }) => kind === 'fold')) return undefined
      const moves = along(node, inner.index, kernel, dims)
      if (moves.kind !== 'contiguous') return undefined
      const same = loads.find((each) => sameExpr(each.load, node))
      const name = same?.name ?? freshName(`${node.tensor}_${inner.index}`, taken)
      if (same === undefined) {
        const { dtype, layout, dims: extent } = tensorOf(node.tensor, kernel)
        const [last, outer] = [node.indices.at(-1), node.indices.slice(0, -1)]
        const runsAlong = last?.kind === 'index' && last.name === inner.index && inner.length.kind === 'dim'
        const isWhole =
          layout.name === 'row' &&
          runsAlong &&
          inner.length.name === extent.at(-1) &&
          outer.every((at) => !contains(at, (each) => each.kind === 'index' && each.name === inner.index))
        loads.push({ name, load: node, dtype: resolveDType(dtype, types), isWhole })
        runs.push(moves.run)
        bytes.push(dtypeInfo[resolveDType(dtype, types)].bytes)
      }
      return inPlaceOf(node, { kind: 'element', type: node.type, row: name, index: indexVar(inner.index) })
    })
  const made = values.map((each) => each.map(chunked))
  let vec = bytes.length === 0 ? 1 : Math.min(mostElements, packBytes / Math.min(...bytes))
  while (runs.some((run) => run % vec !== 0 && Number.isFinite(run))) vec /= 2
  return vec === 1 ? { values, loads: [], vec } : { values: made, loads, vec }
}
