/**
 * Reductions that a kernel would repeat, moved into a launch of their own. A value that is the same all along an axis, such as the mean of a group
 * of channels, is computed once for each point of the axes it depends on; a reduction over several axes is divided among blocks only where
 * nothing else follows from it. The launch in front leaves its results in scratch memory, and the rest of the kernel reads them there. One
 * level of a chain is moved at a time: a variance that reads a mean follows in the next launch.
 *
 *     y[i, j] = x[i, j] / sqrt(sum(m, n: x^2))    s[] = sum(m, n: x^2), one total    y[i, j] = x[i, j] / sqrt(s[])
 */
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, stmtExprs, visit } from '../../ir/walk.js'
import { nestOf, totalsOf } from '../divided/full_reductions.js'
import { isReduction, type Reduction } from '../divided/reduction.js'
import { windowsOf } from '../divided/window_reductions.js'
import { pickElements } from '../normalise/row_scalars.js'
import { divide, isPlain, type SplitKernel } from './cut_kernel.js'

/** Statements whose scalars a launch in front may compute: a reduction, a team's scalar, or a picked element of a row (row_scalars.ts). */
type Moved = Reduction | StmtOf<'team'> | StmtOf<'let'>

/** A reduction of fewer elements costs less than a launch. */
const fewestElements = 64

/** A reduction with what it follows from. */
export interface Known {
  readonly stmt: Moved
  /** Lengths of its loops, one in the other, the outermost first. */
  readonly loops: readonly Expr[]
  /** Indices of the row axes that it depends on. */
  readonly axes: ReadonlySet<string>
  /** Reductions in the longest chain that ends in it. */
  readonly level: number
  /** Statements that it reads, itself included, in order. */
  readonly slice: readonly Stmt[]
}

/**
 * The kernel as two, of which the first computes the reductions that others of its points share.
 * @param part number of the first launch, for its name
 * @returns undefined for a kernel that gains nothing
 */
export function splitLaunch(instance: Instance, part: number): SplitKernel | undefined {
  if (isUpdating(instance.kernel) || instance.kernel.rows.some(({ also = [] }) => also.length > 0)) return undefined
  const { kernel, picked } = pickElements(instance.kernel)
  const all = reductionsOf(kernel, picked)
  const own = ownLoops(kernel, all)
  const repeated = all.filter((each) => isRepeated(each, kernel, own))
  const found = repeated.length > 0 ? repeated : nestedOf(instance, all)
  const level = Math.min(...found.map((each) => each.level))
  const [one] = found.filter((each) => each.level === level)
  if (one === undefined) return undefined
  const moved = found.filter((each) => each.level === level && isBeside(each, one))
  const split = divide(kernel, moved, part)
  return repeated.length > 0 || totalsOf({ ...instance, kernel: split.first }) !== undefined ? split : undefined
}

/**
 * The first walk over columns as a launch of its own, whose blocks the whole grid divides; the rest reads its results.
 * @param part as of `splitLaunch`
 * @returns undefined for a kernel whose reductions are no statements
 */
export function splitWalk({ kernel }: Instance, part: number): SplitKernel | undefined {
  if (isUpdating(kernel) || kernel.rows.some(({ also = [] }) => also.length > 0)) return undefined
  const all = reductionsOf(kernel, new Map())
  const level = Math.min(...all.map((each) => each.level))
  const [one] = all.filter((each) => each.level === level)
  if (one === undefined) return undefined
  const moved = all.filter((each) => each.level === level && isBeside(each, one))
  return divide(kernel, moved, part)
}

/** True if two reductions run over the same loops for the same rows. */
export const isBeside = (a: Known, b: Known): boolean =>
  a.axes.size === b.axes.size && [...a.axes].every((axis) => b.axes.has(axis)) && sameLoops(a.loops, b.loops)

const sameLoops = (a: readonly Expr[], b: readonly Expr[]): boolean =>
  a.length === b.length && a.every((length, i) => hashOf(length) === (b[i] === undefined ? '' : hashOf(b[i])))

/**
 * The reductions that a launch in front may compute.
 * @param picked elements of rows that are scalars, with the statements that make the rows
 */
export function reductionsOf({ rows, body }: Kernel, picked: ReadonlyMap<Stmt, Stmt>): readonly Known[] {
  const indices = new Set(rows.map(({ index }) => index))
  const madeBy = new Map<
    string,
    { readonly axes: ReadonlySet<string>; readonly level: number; readonly slice: readonly Stmt[] }
  >()
  return body.flatMap((stmt): Known[] => {
    const names = new Set(stmtExprs(stmt).flatMap((e) => [...freeNames(e)]))
    const read = [...names].flatMap((name) => madeBy.get(name) ?? [])
    const axes = new Set([...[...names].filter((name) => indices.has(name)), ...read.flatMap((each) => [...each.axes])])
    const level =
      Math.max(0, ...read.map((each) => each.level)) + (isReduction(stmt) || stmt.kind === 'team' || picked.has(stmt) ? 1 : 0)
    const needed = new Set([...read.flatMap((each) => each.slice), stmt])
    const slice = body.filter((each) => needed.has(each))
    for (const { name } of constructOf(stmt).defines(stmt)) madeBy.set(name, { axes, level, slice })
    const isMoved = isReduction(stmt) || stmt.kind === 'team' || (stmt.kind === 'let' && picked.has(stmt))
    return isMoved &&
      slice.every(isPlain) &&
      constructOf(stmt)
        .defines(stmt)
        .every(({ type }) => type !== 'bool')
      ? [{ stmt, loops: loopsOf(picked.get(stmt) ?? stmt), axes, level, slice }]
      : []
  })
}

/** Lengths of the loops of a statement, one in the other, the outermost first. */
function loopsOf(stmt: Stmt): readonly Expr[] {
  const values = constructOf(stmt).elementExprs(stmt)
  const inner = values.map(foldsIn).reduce<readonly Expr[]>((most, each) => (each.length > most.length ? each : most), [])
  return 'length' in stmt ? [stmt.length, ...inner] : inner
}

/** Lengths of the deepest reductions inside of an element. */
function foldsIn(value: Expr): readonly Expr[] {
  let deepest: readonly Expr[] = []
  visit(value, (node) => {
    if (node.kind !== 'fold') return
    const found = [node.length, ...foldsIn(node.value)]
    if (found.length > deepest.length) deepest = found
  })
  return deepest
}

/** Loops of the longest statement that differs along all axes: what a point computes at any rate. */
function ownLoops({ rows, body }: Kernel, all: readonly Known[]): readonly Expr[] {
  const shared = new Set<Stmt>(all.flatMap(({ axes, slice }) => (axes.size < rows.length ? slice : [])))
  return body
    .filter((stmt) => !shared.has(stmt))
    .map(loopsOf)
    .reduce((most, each) => (each.length > most.length ? each : most), [])
}

/** True if points that differ in one axis alone would compute a reduction again, at more cost than that of their own elements. */
function isRepeated({ loops, axes, slice }: Known, kernel: Kernel, own: readonly Expr[]): boolean {
  if (kernel.rows.every(({ index }) => axes.has(index)) || readsList(slice, kernel)) return false
  const more = [...loops]
  for (const length of own) {
    const at = more.findIndex((each) => hashOf(each) === hashOf(length))
    if (at < 0) return false
    more.splice(at, 1)
  }
  return isLong(more)
}

/** True if statements read nothing but lists beside the tensors that a kernel works on, of stop ids say: what they cost is little. */
function readsList(slice: readonly Stmt[], { tensors }: Kernel): boolean {
  const stored = new Set(tensors.flatMap(({ access, dims }) => (access === 'out' ? dims : [])))
  const read = new Set<string>()
  for (const expr of slice.flatMap(stmtExprs)) visit(expr, (node) => node.kind === 'load' && read.add(node.tensor))
  const loaded = tensors.filter(({ name }) => read.has(name))
  return loaded.every(({ dims }) => dims.length < 2 && dims.every((dim) => !stored.has(dim)))
}

const isLong = (lengths: readonly Expr[]): boolean =>
  lengths.some(({ kind }) => kind !== 'const') ||
  lengths.reduce((all, length) => all * (length.kind === 'const' ? Number(length.value) : 1), 1) >= fewestElements

/** Reductions over several axes, in kernels that are no program of totals and add up no windows. */
const nestedOf = (instance: Instance, all: readonly Known[]): readonly Known[] => {
  const nested = all.filter(
    ({ stmt }) => isReduction(stmt) && nestOf(stmt).loops.filter(({ length }) => length.kind !== 'const').length > 1,
  )
  return nested.length === 0 || totalsOf(instance) !== undefined || windowsOf(instance) !== undefined ? [] : nested
}
