/**
 * Kernels that store rows by columns and reduce nothing, where values are the same for all columns of a group, such as its mean: an elementwise
 * kernel would divide for each chunk, and its chunks would end with every group. Values of columns are computed once, before a thread stores its
 * columns of many rows. Runs on the last of several launches (split_launch.ts).
 *
 *     for b, i, g, c: y[b, i, g, c] = x[b, i, g, c] / s[b, g]    for b, t < g * k: d = s[b, t / k]; for i: y[b, i, t] = x[b, i, t] / d
 */
import { dim as dimVar } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, StmtOf } from '../../ir/kernel.js'
import { chunkAccess } from '../access/chunk_access.js'
import { elementsOf, storedValues } from '../normalise/merge_axes.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { contains, hashOf, loadsOf, rewritePaths, usesIndex } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { NoGroups } from '../rows/group_walk.js'
import {
  isContiguous,
  isRunOf,
  lengthOfAxis,
  newPairing,
  onPairs,
  type Pair,
  storedOnPairs,
  withPairs,
} from '../rows/paired_axes.js'
import { partsOf } from './column_room.js'
import type { ChunkLoad, ColumnProgram, ColumnStores } from './divided_program.js'

type Store = StmtOf<'store'>

/** A program of columns, and the kernel over them. */
export interface StoredColumns extends Pick<Instance, 'kernel' | 'dims'> {
  readonly axes: readonly RowAxis[]
  readonly vec: number
  readonly program: ColumnProgram
}

/** Bytes of one access, and the most and fewest columns of a chunk. */
const packBytes = 16
const mostColumns = 8
const fewestColumns = 4

/** The kernel as columns that are stored; undefined if it has no values of groups of columns, or if its rows are not walked as one. */
export function storedColumns(instance: Instance): StoredColumns | undefined {
  try {
    return inColumns(instance)
  } catch (error) {
    if (error instanceof NoGroups) return undefined
    throw error
  }
}

function inColumns({ kernel: given, dims: fixed, types }: Instance): StoredColumns | undefined {
  const kernel = elementsOf(given)
  const stores = kernel?.body.filter((s): s is Store => s.kind === 'store') ?? []
  const [first] = stores
  if (kernel === undefined || first === undefined) return undefined
  const values = storedValues(kernel)
  const found = axesOf(kernel, first, values, fixed)
  if (found === undefined) return undefined
  const { pairs, walked, rows } = found
  const pairing = newPairing(kernel, fixed, [])
  const body = stores.map((s, i): Store => {
    const indices = storedOnPairs(s, pairs, pairing)
    return { ...s, indices, value: onPairs(values[i] ?? s.value, pairs, pairing) }
  })
  const paired = withPairs({ ...kernel, rows, body }, pairs, pairing)
  const column = rows.find(({ index }) => index === pairs[0]?.at)
  return column === undefined ? undefined : programOf(paired, column, walked, types)
}

interface Axes {
  /** Group and column, and two axes of rows. */
  readonly pairs: readonly Pair[]
  /** The axis of rows, which is walked. */
  readonly walked: RowAxis
  /** All axes, that of columns in place of two. */
  readonly rows: readonly RowAxis[]
}

/** Axes of groups, columns and rows: no value of a group depends on those of rows. */
function axesOf(kernel: Kernel, store: Store, values: readonly Expr[], fixed: Instance['dims']): Axes | undefined {
  const of = { kernel, fixed }
  const inner = kernel.rows.find(({ index }) => isContiguous(of, store, index))
  const loopOf = ({ index, dim }: RowAxis): Loop => ({ index, length: lengthOfAxis(dim, fixed) })
  const outer = inner && kernel.rows.find((axis) => isRunOf(of, store, axis.index, loopOf(inner)))
  if (inner === undefined || outer === undefined || kernel.rows.some(({ also, times }) => (also ?? times) !== undefined))
    return undefined
  const others = loadsOf(values).filter((load) => !isRunOf(of, load, outer.index, loopOf(inner)))
  if (!others.some((load) => usesIndex(load, outer.index) && !usesIndex(load, inner.index))) return undefined
  const around = kernel.rows.filter(
    (axis) => axis !== inner && axis !== outer && !others.some((load) => usesIndex(load, axis.index)),
  )
  const [far, near, ...more] = around
  if (far === undefined || more.length > 0) return undefined
  if (near !== undefined && !isRunOf(of, store, far.index, loopOf(near))) return undefined
  const taken = takenNames(kernel)
  const pair = (a: RowAxis, b: RowAxis): Pair => ({
    outer: loopOf(a),
    inner: loopOf(b),
    at: freshName(b.index, taken),
    dim: freshName(`${a.dim}*${b.dim}`, taken),
  })
  const pairs = [pair(outer, inner), ...(near === undefined ? [] : [pair(far, near)])]
  const [columns, both] = pairs.map(({ at, dim }): RowAxis => ({ index: at, dim }))
  if (columns === undefined) return undefined
  const left = kernel.rows.filter((axis) => ![inner, outer, far, near].includes(axis))
  return { pairs, walked: both ?? far, rows: [...left, both ?? far, columns] }
}

function programOf(
  { kernel, dims }: Pick<Instance, 'kernel' | 'dims'>,
  column: RowAxis,
  walked: RowAxis,
  types: Instance['types'],
): StoredColumns | undefined {
  const row: Loop = { index: walked.index, length: lengthOfAxis(walked.dim, dims) }
  const access = chunkAccess(kernel, column, [row], { dims, types })
  const loads: ChunkLoad[] = []
  const stores = kernel.body.filter((s): s is Store => s.kind === 'store')
  const chunked = stores.map((s) => ({
    ...s,
    value: access.chunked(s.value, loads, (load, { kind }) => kind === 'contiguous' && usesIndex(load, row.index)),
  }))
  const runs = loads.map(({ load }) => access.along(load, column.index))
  if (loads.length === 0 || runs.some((moves) => moves.kind !== 'contiguous' || Number.isFinite(moves.run))) return undefined
  const vec = Math.min(mostColumns, packBytes / Math.min(...loads.map(({ dtype }) => dtypeInfo[dtype].bytes)))
  if (vec < fewestColumns) return undefined
  const { once, stores: made } = onceOf(chunked, row.index, column.index, kernel)
  const walk: ColumnStores = { kind: 'stores', loops: [row], loads, stores: made.map((s) => access.stored(s, vec)) }
  const sequence = [...once, walk]
  const program: ColumnProgram = {
    kind: 'columns',
    column,
    length: dimVar(column.dim),
    parts: partsOf(sequence, vec),
    each: 1,
    sequence,
  }
  return { kernel, dims, axes: kernel.rows.filter((axis) => axis !== column && axis !== walked), vec, program }
}

/** The stores with values that are the same for all rows as scalars of a column. */
function onceOf(stores: readonly Store[], row: string, column: string, kernel: Kernel) {
  const taken = takenNames(kernel)
  const once: StmtOf<'let'>[] = []
  const known = new Map<string, Expr>()
  const isOnce = (e: Expr): boolean =>
    e.type !== 'bool' &&
    !contains(e, (node) => node.kind === 'element' || (node.kind === 'index' && node.name === row)) &&
    contains(e, ({ kind }) => kind === 'load')
  const hoisted = (value: Expr): Expr =>
    rewritePaths(value, (node, always) => {
      if (!always || !isOnce(node)) return undefined
      const name = known.get(hashOf(node))
      if (name !== undefined) return name
      const made: Expr = {
        kind: 'local',
        type: node.type,
        name: freshName(node.kind === 'load' ? `${node.tensor}_${column}` : `of_${column}`, taken),
      }
      once.push({ kind: 'let', name: made.name, type: node.type, value: node })
      known.set(hashOf(node), made)
      return made
    })
  return { once, stores: stores.map((s) => ({ ...s, value: hoisted(s.value) })) }
}
