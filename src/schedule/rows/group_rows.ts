/**
 * Groups as rows. Where points share reductions over a set of axes, and each group of elements is one contiguous run of memory, these axes become
 * one, and a row program over it reads a group once and keeps it on chip. Big tensors have the merged axis in their shape; an index of one of the
 * axes, as of a scale per channel, becomes a quotient or a remainder. Runs beside the pass that moves shared reductions into launches in front
 * (split_launch.ts): the launcher chooses between both forms by the sizes.
 *
 *     for b, g, j: y[b, g, j, c] = x[b, g, j, c] / sum(i < k: sum(c < s: x[b, g, i, c])) * w[j]
 * becomes
 *     for b, g: y[b, g, t] = x[b, g, t] / sum(t < k * s: x[b, g, t]) * w[t / s]
 */
import { call, i32, index as indexVar } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import { indicesOfRow } from '../../ir/constructs/store_row.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, mapStmt, stmtExprs, substitute, visit } from '../../ir/walk.js'
import { nestOf } from '../divided/full_reductions.js'
import { isReduction, type Reduction } from '../divided/reduction.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { contains, substituteDims } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { groupTensor, type MergedAxis, runThrough } from './group_run.js'
import { type Grouping, haveLengths, lengthOf, NoGroups, offsetIn, onWalk, refuse, tensorIn, type Walk } from './group_walk.js'

type Store = StmtOf<'store'> | StmtOf<'storeRow'>

/** A kernel whose rows are groups. */
export interface GroupRows {
  readonly instance: Instance
  /** Elements of a group, over the dimensions of the op. */
  readonly length: Expr
}

/** The kernel with groups as rows; undefined if its groups are no runs of memory, or if a statement needs the axes apart. */
export function groupRows({ kernel, types, dims: fixed }: Instance): GroupRows | undefined {
  if (isUpdating(kernel) || kernel.rows.some(({ also = [] }) => also.length > 0)) return undefined
  try {
    return groupKernel(kernel, types, fixed)
  } catch (error) {
    if (error instanceof NoGroups) return undefined
    throw error
  }
}

function groupKernel(given: Kernel, types: Instance['types'], fixed: Instance['dims']): GroupRows {
  const numbers = new Map(Object.entries(fixed).map(([name, extent]) => [name, i32(extent)]))
  const kernel = { ...given, body: given.body.map((s) => mapStmt(s, (e) => substituteDims(e, numbers))) }
  const groups = axesOfReductions(kernel)
  const within = kernel.rows.filter((axis) => !groups.includes(axis))
  const extentOf = (dim: string): Expr => numbers.get(dim) ?? { kind: 'dim', type: 'i32', name: dim }
  const point = within.map(({ index, dim }): Loop => ({ index, length: extentOf(dim) }))
  const { lengths, order } = groupLoops(kernel, point, fixed)
  const taken = takenNames(kernel)
  const merged = mergedAxis(lengths, taken)
  const grouping: Grouping = {
    kernel,
    fixed,
    groups,
    merged,
    lengths,
    order,
    elements: new Map(within.map(({ index }) => [index, true])),
    grouped: new Map(),
    plain: new Set(),
    taken,
  }
  const body = kernel.body.map((s) => converted(s, point, grouping))
  if ([...grouping.grouped.keys()].some((name) => grouping.plain.has(name))) refuse()
  const { facts: _, ...rest } = kernel
  const isKnown = kernel.dims.includes(merged.dim)
  const number = merged.extent.kind === 'const' ? { [merged.dim]: Number(merged.extent.value) } : {}
  const made: Kernel = {
    ...rest,
    name: `${kernel.name}_rows`,
    ...(isKnown ? {} : { dims: [...kernel.dims, merged.dim], computed: { [merged.dim]: merged.extent } }),
    tensors: kernel.tensors.map((tensor) => grouping.grouped.get(tensor.name) ?? tensor),
    rows: groups,
    body,
  }
  return { instance: { kernel: made, types, dims: { ...fixed, ...number } }, length: merged.extent }
}

/** Axes that all reductions depend on, directly or through scalars: those of groups. */
function axesOfReductions({ rows, body }: Kernel): Kernel['rows'] {
  const known = new Map<string, ReadonlySet<string>>(rows.map(({ index }) => [index, new Set([index])]))
  const found: ReadonlySet<string>[] = []
  for (const stmt of body) {
    const read = new Set(stmtExprs(stmt).flatMap((e) => [...freeNames(e)].flatMap((name) => [...(known.get(name) ?? [])])))
    for (const { name } of constructOf(stmt).defines(stmt)) known.set(name, read)
    if (isReduction(stmt)) found.push(read)
  }
  const [first = refuse()] = found
  if (found.some((axes) => axes.size !== first.size || [...axes].some((axis) => !first.has(axis)))) refuse()
  return rows.filter(({ index }) => first.has(index))
}

const isStore = (s: Stmt): s is Store => s.kind === 'store' || s.kind === 'storeRow'

/** Loops of the elements that a statement stores, if it stores each element of a group. */
const loopsOfStore = (s: Store, point: readonly Loop[]): readonly Loop[] =>
  s.kind === 'store' ? point : [...point, { index: s.index, length: s.length }]

const indicesOf = (s: Store): readonly Expr[] => (s.kind === 'store' ? s.indices : indicesOfRow(s, indexVar(s.index)))

/** Loops of a group, innermost first: the most that a store runs through, or else those of a reduction. */
function groupLoops(kernel: Kernel, point: readonly Loop[], fixed: Instance['dims']): Pick<Grouping, 'lengths' | 'order'> {
  const stored = kernel.body.filter(isStore).flatMap((s) => {
    const loops = loopsOfStore(s, point)
    const run = loops.length === 0 ? undefined : runThrough(offsetIn(kernel, s.tensor, indicesOf(s), fixed), loops)
    return run === undefined ? [] : [{ loops: run.loops, order: orderOf(run.loops, s) }]
  })
  const reduced = kernel.body.filter(isReduction).flatMap((s) => {
    const loops = point.length > 0 ? undefined : runOfReduction(s, kernel, fixed)
    return loops === undefined ? [] : [{ loops, order: [] }]
  })
  const [first = refuse(), ...others] = [...stored, ...reduced]
  const { loops, order } = others.reduce((most, each) => (each.loops.length > most.loops.length ? each : most), first)
  return { lengths: loops.map(({ length }) => length), order }
}

const orderOf = (loops: readonly Loop[], s: Store): Grouping['order'] =>
  loops.map(({ index }) => (s.kind === 'storeRow' && s.index === index ? undefined : index))

/** Loops of a reduction in the order in which one of its loads runs through memory, innermost first. */
function runOfReduction(s: Reduction, kernel: Kernel, fixed: Instance['dims']): readonly Loop[] | undefined {
  const { loops, values } = nestOf(s)
  let found: readonly Loop[] | undefined
  for (const value of values)
    visit(value, (e) => {
      if (e.kind === 'load') found ??= runThrough(offsetIn(kernel, e.tensor, e.indices, fixed), loops)?.loops
    })
  return found
}

/** The axis in place of loops: the dimension of a single loop, or a new one. */
export function mergedAxis(lengths: readonly Expr[], taken: Set<string>): MergedAxis {
  const [only, ...others] = lengths
  if (only?.kind === 'dim' && others.length === 0) return { dim: only.name, extent: only }
  const [first = refuse(), ...rest] = [...lengths].reverse()
  const product = rest.reduce((all, length) => call('mul', all, length), first)
  const isNumber = lengths.every(({ kind }) => kind === 'const')
  const number = lengths.reduce((all, length) => all * (length.kind === 'const' ? Number(length.value) : 1), 1)
  return { dim: freshName(nameOf(lengths), taken), extent: isNumber ? i32(number) : product }
}

/** `k*s`, the outermost first. */
const nameOf = (lengths: readonly Expr[]): string =>
  lengths
    .map((length) => (length.kind === 'dim' ? length.name : length.kind === 'const' ? String(length.value) : 'n'))
    .reverse()
    .join('*')

function converted(s: Stmt, point: readonly Loop[], grouping: Grouping): Stmt {
  switch (s.kind) {
    case 'reduce':
    case 'merge':
      return groupReduction(s, grouping)
    case 'let':
      return isOfPoint([s.value], grouping) ? rowOfPoint(s, point, grouping) : withoutPoint(s, grouping)
    case 'row':
      return rowOfPoint(s, point, grouping)
    case 'store':
    case 'storeRow':
      return groupStore(s, point, grouping)
    default:
      return refuse()
  }
}

/** True if expressions differ within a group. */
const isOfPoint = (exprs: readonly Expr[], { elements }: Grouping): boolean =>
  exprs.some((e) => [...freeNames(e)].some((name) => elements.has(name)))

/** The statement as it is, which runs once per group. */
function withoutPoint<S extends Stmt>(s: S, grouping: Grouping): S {
  if (isOfPoint(stmtExprs(s), grouping)) refuse()
  for (const e of stmtExprs(s)) notePlain(e, grouping)
  return s
}

function notePlain(e: Expr, { plain }: Grouping): void {
  visit(e, (node) => {
    if (node.kind === 'load') plain.add(node.tensor)
  })
}

/** A reduction over the merged axis; one over other elements stays, if it is over one axis. */
function groupReduction(s: Reduction, grouping: Grouping): Stmt {
  const { kernel, fixed, merged } = grouping
  const { loops, values } = nestOf(s)
  const run = runOfReduction(s, kernel, fixed)
  if (run === undefined || !haveLengths(run, grouping)) {
    if (loops.length > 1 || values.some((value) => contains(value, ({ kind }) => kind === 'fold'))) refuse()
    return withoutPoint(s, grouping)
  }
  const row = grouping.order.indexOf(undefined)
  const walk: Walk = { loops: run, at: freshName('t', grouping.taken), row: row < 0 ? undefined : run[row]?.index }
  // A value of the point is no value of the whole group.
  for (const value of values) if ([...freeNames(value)].some((name) => grouping.elements.get(name) === true)) refuse()
  const made = values.map((value) => onWalk(value, walk, grouping))
  const length: Expr = lengthOf(merged)
  if (s.kind === 'merge') return { ...s, index: walk.at, length, values: made }
  return { ...s, index: walk.at, length, value: made[0] ?? refuse() }
}

/** A value of each element: a row over the merged axis. */
function rowOfPoint(s: StmtOf<'let'> | StmtOf<'row'>, point: readonly Loop[], grouping: Grouping): Stmt {
  const { order, lengths, elements, merged, taken } = grouping
  const row = s.kind === 'row' ? s.index : undefined
  const loops = order.map((index, i): Loop => {
    const loop = point.find((each) => each.index === index)
    return loop ?? { index: row ?? noIndex, length: s.kind === 'row' ? s.length : (lengths[i] ?? refuse()) }
  })
  if (!haveLengths(loops, grouping) || (row !== undefined && !order.includes(undefined))) refuse()
  const at = freshName('t', taken)
  const value = onWalk(s.value, { loops, at, row }, grouping)
  elements.set(
    s.name,
    [...freeNames(s.value)].some((name) => elements.get(name) === true),
  )
  return { kind: 'row', name: s.name, type: s.type, index: at, length: lengthOf(merged), value }
}

/** Index of a loop that a value does not depend on. */
const noIndex = ' '

/** A store of each element of a group, or of each place of one axis within it. */
function groupStore(s: Store, point: readonly Loop[], grouping: Grouping): Stmt {
  const { kernel, fixed, groups, merged, taken } = grouping
  const indices = indicesOf(s)
  const loops = loopsOfStore(s, point)
  if (loops.length === 0) return withoutPoint(s, grouping)
  const run = runThrough(offsetIn(kernel, s.tensor, indices, fixed), loops)
  if (run === undefined || !haveLengths(run.loops, grouping)) return storeAlong(s, point, grouping)
  if (orderOf(run.loops, s).some((index, i) => index !== grouping.order[i])) refuse()
  const made = groupTensor(tensorIn(kernel, s.tensor), run.base, groups, merged, fixed) ?? refuse()
  grouping.grouped.set(s.tensor, made.tensor)
  const at = freshName('t', taken)
  const walk: Walk = { loops: run.loops, at, row: s.kind === 'storeRow' ? s.index : undefined }
  return {
    kind: 'storeRow',
    tensor: s.tensor,
    rows: made.axes.map(({ index }) => indexVar(index)),
    index: at,
    length: lengthOf(merged),
    value: onWalk(s.value, walk, grouping),
    ...(s.when === undefined ? {} : { when: onWalk(s.when, walk, grouping) }),
  }
}

/** A store at each place of one axis within a group, of a value that is the same along all other axes. */
function storeAlong(s: Store, point: readonly Loop[], grouping: Grouping): Stmt {
  const last = s.kind === 'store' ? s.indices.at(-1) : undefined
  const loop = last?.kind === 'index' ? point.find(({ index }) => index === last.name) : undefined
  if (s.kind !== 'store' || loop === undefined) return refuse()
  const others = [...s.indices.slice(0, -1), s.value, ...(s.when === undefined ? [] : [s.when])]
  const own = new Map(grouping.elements)
  own.delete(loop.index)
  if (isOfPoint(others, { ...grouping, elements: own })) refuse()
  const at = freshName(loop.index, grouping.taken)
  const place = (e: Expr): Expr => {
    notePlain(e, grouping)
    return substitute(e, new Map([[loop.index, indexVar(at)]]))
  }
  return {
    kind: 'storeRow',
    tensor: s.tensor,
    rows: s.indices.slice(0, -1).map(place),
    index: at,
    length: loop.length,
    value: place(s.value),
    ...(s.when === undefined ? {} : { when: place(s.when) }),
  }
}
