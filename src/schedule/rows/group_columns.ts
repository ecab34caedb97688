/**
 * Reductions of groups of columns as reductions of the columns, whose results are combined where they are read. Where the elements of a group are short
 * runs far apart, as with channels last, blocks that walk a group read parts of memory sectors; columns read whole rows. Runs on launches in front
 * (split_launch.ts).
 *
 *     s[b, g] = sum(i: sum(c < k: x[b, i, g, c]))    r[b, t] = sum(i: x[b, i, t]) for t < g * k; s[b, g] is sum(c < k: r[b, g * k + c])
 */
import { call, dim as dimVar, index as indexVar } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, RowAxis, Stmt, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { mapStmt, rewrite } from '../../ir/walk.js'
import { columnsOf } from '../divided/column_reductions.js'
import { type Nest, nestOf } from '../divided/full_reductions.js'
import { isReduction } from '../divided/reduction.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { loadsOf } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { NoGroups, refuse } from './group_walk.js'
import { isContiguous, isRunOf, lengthOfAxis, newPairing, onPairs, type Pair, withPairs } from './paired_axes.js'

/** Launches in place of two: the reductions of columns, and what reads them. */
export interface GroupColumns {
  readonly columns: Pick<Instance, 'kernel' | 'dims'>
  readonly rest: Pick<Instance, 'kernel' | 'dims'>
  /** Columns of a group. */
  readonly length: Expr
}

/**
 * The launch in front of others over the columns of its groups.
 * @param rest what follows the launch, and reads its results
 * @returns undefined if its groups are no columns, or if reductions of the columns are no program of their own
 */
export function groupColumns(instance: Instance, rest: Kernel): GroupColumns | undefined {
  try {
    return inColumns(instance, rest)
  } catch (error) {
    if (error instanceof NoGroups) return undefined
    throw error
  }
}

/** Groups of columns: the axis of groups, the loop over the columns of one, and the loops over rows. */
interface Groups {
  readonly kernel: Kernel
  readonly fixed: Instance['dims']
  readonly axis: RowAxis
  /** Position of the loop over columns, and of those over rows, the outermost first. */
  readonly inner: number
  readonly rows: readonly number[]
  /** Index and dimension of columns of all groups, and the dimension of rows of two loops. */
  readonly column: Pick<Pair, 'at' | 'dim'>
  readonly row: string
  readonly taken: Set<string>
}

function inColumns({ kernel, dims: fixed, types }: Instance, rest: Kernel): GroupColumns | undefined {
  const nests = kernel.body.filter(isReduction).map(nestOf)
  const areSimple = kernel.body.every(({ kind }) => kind === 'let' || kind === 'reduce' || kind === 'store')
  const [first] = nests
  if (first === undefined || !areSimple) return undefined
  if (nests.some(({ loops }) => loops.length !== first.loops.length)) return undefined
  const groups = groupsOf(first, kernel, fixed)
  if (groups === undefined) return undefined
  const columns = columnsKernel(groups, nests)
  if (columnsOf({ ...columns, types }) === undefined) return undefined
  const { length } = first.loops[groups.inner] ?? refuse()
  return { columns, rest: { kernel: restOf(groups, first, columns.kernel, rest), dims: columns.dims }, length }
}

/** The groups of a reduction; undefined if no load of it walks them as columns, of rows that are far apart. */
function groupsOf(nest: Nest, kernel: Kernel, fixed: Instance['dims']): Groups | undefined {
  const of = { kernel, fixed }
  for (const load of loadsOf(nest.values)) {
    const inner = nest.loops.findIndex(({ index }) => isContiguous(of, load, index))
    const loop = nest.loops[inner]
    const axis = loop && kernel.rows.find(({ index, also = [] }) => also.length === 0 && isRunOf(of, load, index, loop))
    if (loop === undefined || axis === undefined) continue
    const others = nest.loops.flatMap((_, i) => (i === inner ? [] : [i]))
    const rows = [others, [...others].reverse()].find(([far, near, ...more]) => {
      const [outer, next] = [nest.loops[far ?? -1], nest.loops[near ?? -1]]
      return outer !== undefined && more.length === 0 && (next === undefined || isRunOf(of, load, outer.index, next))
    })
    if (rows === undefined) continue
    const taken = takenNames(kernel)
    const dimOf = (...names: readonly string[]): string => freshName(names.join('*'), taken)
    const column = { at: freshName(loop.index, taken), dim: dimOf(axis.dim, nameOf(loop)) }
    const row = dimOf(...rows.map((i) => nameOf(nest.loops[i])))
    return { kernel, fixed, axis, inner, rows, column, row, taken }
  }
  return undefined
}

const nameOf = (loop: Loop | undefined): string =>
  loop?.length.kind === 'dim' ? loop.length.name : loop?.length.kind === 'const' ? String(loop.length.value) : 'n'

/** The loops of a nest that become one: group and column, and two loops over rows. */
function pairsOf({ axis, fixed, inner, rows, column, row }: Groups, { loops }: Pick<Nest, 'loops'>): readonly Pair[] {
  const group = {
    outer: { index: axis.index, length: lengthOfAxis(axis.dim, fixed) },
    inner: loops[inner] ?? refuse(),
    ...column,
  }
  const [far, near] = rows.map((i) => loops[i])
  return far === undefined || near === undefined ? [group] : [group, { outer: far, inner: near, at: far.index, dim: row }]
}

/** Name of the scratch tensor with the results of columns. */
const columnsName = ({ name }: StmtOf<'reduce'>): string => `${name}_columns`

/** The launch over the rows of each column. */
function columnsKernel(groups: Groups, nests: readonly Nest[]): Pick<Instance, 'kernel' | 'dims'> {
  const { kernel, fixed, axis, column, row, taken } = groups
  const pairing = newPairing(
    kernel,
    fixed,
    nests.flatMap(({ loops }) => loops),
  )
  const [first] = nests
  const pairs = pairsOf(groups, first ?? refuse())
  const rows = kernel.rows.map((each) => (each === axis ? { index: column.at, dim: column.dim } : each))
  const places = rows.map(({ index }) => indexVar(index))
  const scratch: TensorParam[] = []
  const body = kernel.body.flatMap((s): Stmt[] => {
    if (s.kind === 'let') return [{ ...s, value: onPairs(s.value, pairs.slice(0, 1), pairing) }]
    if (s.kind !== 'reduce') return []
    const nest = nestOf(s)
    const own = pairsOf(groups, nest)
    const { index, length } = nest.loops[groups.rows[0] ?? 0] ?? refuse()
    const tensor = freshName(columnsName(s), taken)
    const dims = rows.map(({ dim }) => dim)
    scratch.push({ name: tensor, access: 'out', dtype: s.type === 'i32' ? 'i32' : 'f32', dims, layout: rowMajor(dims) })
    const value: Expr = { kind: 'local', name: s.name, type: s.type }
    return [
      { ...s, index, length: own.length > 1 ? dimVar(row) : length, value: onPairs(nest.values[0] ?? refuse(), own, pairing) },
      { kind: 'store', tensor, indices: places, value },
    ]
  })
  const made = withPairs({ ...kernel, name: `${kernel.name}_columns`, rows, body }, pairs, pairing)
  const tensors = [...made.kernel.tensors.filter(({ access }) => access === 'in'), ...scratch]
  return { ...made, kernel: { ...made.kernel, tensors } }
}

/** The kernel after the launch, with the sum of its columns in place of each result of a group. */
function restOf(groups: Groups, first: Nest, columns: Kernel, rest: Kernel): Kernel {
  const { kernel, axis, inner, column } = groups
  const { length } = first.loops[inner] ?? refuse()
  const taken = takenNames(rest, kernel)
  const given = columns.tensors.filter(({ access }) => access === 'out').map((each): TensorParam => ({ ...each, access: 'in' }))
  const results = kernel.body.flatMap((s) => (s.kind === 'store' ? [s] : []))
  const made = results.map(({ tensor, value }, i) => {
    const reduced = kernel.body.find(
      (s): s is StmtOf<'reduce'> => s.kind === 'reduce' && value.kind === 'local' && s.name === value.name,
    )
    return { tensor, reduced: reduced ?? refuse(), scratch: given[i]?.name ?? refuse() }
  })
  const combined = (load: ExprOf<'load'>): Expr => {
    const of = made.find(({ tensor }) => tensor === load.tensor) ?? refuse()
    const at = freshName('c', taken)
    const places = kernel.rows.map((each, i) => {
      const place = load.indices[i] ?? refuse()
      return each === axis ? call('add', call('mul', place, length), indexVar(at)) : place
    })
    const value: Expr = { kind: 'load', type: load.type, tensor: of.scratch, indices: places }
    return { kind: 'fold', type: load.type, monoid: of.reduced.monoid, length, index: at, value }
  }
  const isResult = (name: string): boolean => made.some(({ tensor }) => tensor === name)
  const body = rest.body.map((s) =>
    mapStmt(s, (e) => rewrite(e, (node) => (node.kind === 'load' && isResult(node.tensor) ? combined(node) : node))),
  )
  const extent = columns.computed?.[column.dim] ?? refuse()
  return {
    ...rest,
    dims: [...rest.dims.filter((dim) => dim !== column.dim), column.dim],
    computed: { ...rest.computed, [column.dim]: extent },
    tensors: [...given, ...rest.tensors.filter(({ name }) => !isResult(name))],
    body,
  }
}
