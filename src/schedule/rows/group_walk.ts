/**
 * Expressions over the loops of a group, rewritten over its merged axis. Loads of each element of the group take the merged axis; other loads are
 * at quotients and remainders of its index. Used by the pass that merges the axes of groups (group_rows.ts).
 */
import { call, index as indexVar } from '../../ir/build.js'
import { type Expr, type ExprOf, inPlaceOf } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { polynomialOf, samePolynomial } from '../../ir/polynomial.js'
import { freeNames, substitute } from '../../ir/walk.js'
import { offsetOf } from '../access/access.js'
import type { Loop } from '../normalise/normal.js'
import { contains, rewritePaths } from '../normalise/rewrite.js'
import { groupTensor, type MergedAxis, runThrough } from './group_run.js'

/** Reason to leave a kernel as it is; caught by the pass. */
export class NoGroups extends Error {}
export const refuse = (): never => {
  throw new NoGroups()
}

/** A kernel whose groups become rows, while its statements are converted. */
export interface Grouping {
  readonly kernel: Kernel
  readonly fixed: Instance['dims']
  /** Axes of groups, and the loops of a point: axes within its group, and the row that it stores. */
  readonly groups: Kernel['rows']
  readonly merged: MergedAxis
  /** Lengths of the merged loops, innermost first. */
  readonly lengths: readonly Expr[]
  /** Indices of a point along them; undefined for the row that it stores. */
  readonly order: readonly (string | undefined)[]
  /** Values of a point that differ within its group, which become rows: true if they depend on the point itself. */
  readonly elements: Map<string, boolean>
  /** Tensors with the merged axis. */
  readonly grouped: Map<string, TensorParam>
  /** Tensors that are read as they are. */
  readonly plain: Set<string>
  readonly taken: Set<string>
  /** True if loads that move along all loops may be no runs. */
  readonly mayGather?: boolean
}

/** Loops of one statement, and the index that replaces theirs. */
export interface Walk {
  /** Innermost first. */
  readonly loops: readonly Loop[]
  readonly at: string
  /** Index of rows of values, which a point computes for itself. */
  readonly row: string | undefined
  /** Places of the loops on the merged axis, if not those of `placesOn`. */
  readonly places?: ReadonlyMap<string, Expr>
}

export const tensorIn = ({ tensors }: Kernel, name: string): TensorParam =>
  tensors.find((tensor) => tensor.name === name) ?? refuse()

export const offsetIn = (kernel: Kernel, tensor: string, indices: readonly Expr[], fixed: Instance['dims']): Expr =>
  offsetOf(tensorIn(kernel, tensor), indices, fixed)

export const lengthOf = ({ dim, extent }: MergedAxis): Expr =>
  extent.kind === 'const' ? extent : { kind: 'dim', type: 'i32', name: dim }

export const haveLengths = (loops: readonly Loop[], { lengths }: Grouping): boolean =>
  loops.length === lengths.length &&
  loops.every(({ length }, i) => {
    const other = lengths[i]
    return other !== undefined && samePolynomial(polynomialOf(length), polynomialOf(other))
  })

/** An expression over the loops of a walk, over the merged index. */
export function onWalk(e: Expr, walk: Walk, grouping: Grouping): Expr {
  const places = walk.places ?? placesOn(walk)
  return rewritePaths(e, (node, always) => {
    if (node.kind === 'load') return loadOn(node, always, walk, grouping, places)
    if (node.kind === 'element') return elementOn(node, walk, grouping)
    if (node.kind === 'local' && grouping.elements.has(node.name))
      return { kind: 'element', type: node.type, row: node.name, index: indexVar(walk.at) }
    if (node.kind === 'index') return places.get(node.name)
    return undefined
  })
}

/** Places on the merged axis: quotients and remainders. */
function placesOn({ loops, at }: Walk): ReadonlyMap<string, Expr> {
  const places = new Map<string, Expr>()
  let inner: Expr | undefined
  loops.forEach(({ index, length }, i) => {
    const whole = inner === undefined ? indexVar(at) : call('idiv', indexVar(at), inner)
    places.set(index, i === loops.length - 1 ? whole : call('mod', whole, length))
    inner = inner === undefined ? length : call('mul', inner, length)
  })
  return places
}

/** A load of each element of a group, or of what some of them share. */
function loadOn(load: ExprOf<'load'>, always: boolean, walk: Walk, grouping: Grouping, places: ReadonlyMap<string, Expr>): Expr {
  const { kernel, fixed, groups, merged, grouped, plain } = grouping
  const offset = offsetIn(kernel, load.tensor, load.indices, fixed)
  const run = runThrough(offset, walk.loops)
  // Axes of equal extents may run in another order.
  const isInOrder = run?.loops.every(({ index }, i) => index === walk.loops[i]?.index) === true
  if (run !== undefined && isInOrder && haveLengths(run.loops, grouping)) {
    // The merged access is in bounds at any index, so the load must be.
    if (!always && !isPlain(load, walk, grouping)) refuse()
    const made = groupTensor(tensorIn(kernel, load.tensor), run.base, groups, merged, fixed) ?? refuse()
    const known = grouped.get(load.tensor)
    if (known !== undefined && !sameShape(known, made.tensor)) refuse()
    grouped.set(load.tensor, made.tensor)
    return inPlaceOf(load, { ...load, indices: [...made.axes.map(({ index }) => indexVar(index)), indexVar(walk.at)] })
  }
  const free = freeNames(offset)
  if (grouping.mayGather !== true && walk.loops.every(({ index }) => free.has(index))) refuse()
  plain.add(load.tensor)
  return inPlaceOf(load, { ...load, indices: load.indices.map((at) => onWalkIndex(at, walk, grouping, places)) })
}

/** An index of a load, which may itself read memory. */
const onWalkIndex = (e: Expr, walk: Walk, grouping: Grouping, places: ReadonlyMap<string, Expr>): Expr =>
  contains(e, ({ kind }) => kind === 'load' || kind === 'element' || kind === 'local')
    ? onWalk(e, walk, grouping)
    : substitute(e, places)

/** True if each index is a variable that runs over the tensor's own dimension. */
function isPlain({ tensor, indices }: ExprOf<'load'>, { loops }: Walk, { kernel, fixed }: Grouping): boolean {
  const { dims } = tensorIn(kernel, tensor)
  return indices.every((at, i) => {
    if (at.kind !== 'index') return false
    const dim = dims[i]
    const loop = loops.find(({ index }) => index === at.name)
    if (loop === undefined) return kernel.rows.some((axis) => axis.index === at.name && axis.dim === dim)
    const number = fixed[dim ?? '']
    return loop.length.kind === 'dim' ? loop.length.name === dim : loop.length.kind === 'const' && loop.length.value === number
  })
}

const sameShape = (a: TensorParam, b: TensorParam): boolean =>
  a.dims.join() === b.dims.join() && samePolynomial(polynomialOf(a.layout.offset), polynomialOf(b.layout.offset))

/** An element of a row of the point, at its own index. */
function elementOn(e: ExprOf<'element'>, walk: Walk, { elements }: Grouping): Expr {
  if (!elements.has(e.row) || e.index.kind !== 'index' || e.index.name !== walk.row) return refuse()
  return inPlaceOf(e, { ...e, index: indexVar(walk.at) })
}
