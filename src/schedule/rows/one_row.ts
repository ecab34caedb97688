/**
 * Elementwise kernels as one row. Where rows are no whole chunks, neither are their chunks aligned. If all results are runs of elements over all
 * axes, one row of all elements has whole, aligned chunks: its tensors have one axis, and an index of another access, as of a bias, becomes a quotient
 * or a remainder. A launcher takes this form for such rows, and for small planes of kernels that load tiles (rules.ts). Kernels whose accesses are all
 * runs need none (src/schedule/access/one_run.ts).
 *
 *     for m, c < n: y[m, c] = x[m, c] + b[c]         becomes         for t < m * n: y[t] = x[t] + b[t % n]
 */
import { call, i32, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { extentOf } from '../../ir/row_axis.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, mapStmt, stmtExprs, visit } from '../../ir/walk.js'
import { numberOf } from '../access/access.js'
import { isFull, multiplesOf } from '../access/multiples.js'
import { oneRun } from '../access/one_run.js'
import { type InRow, type MappedKernel, onlyPass } from '../mapped.js'
import { elementsOf, mergeAxes } from '../normalise/merge_axes.js'
import { freshName, type Loop } from '../normalise/normal.js'
import { contains, substituteDims } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { smallPlane } from '../rules.js'
import { mergedAxis } from './group_rows.js'
import { groupTensor, runThrough } from './group_run.js'
import { type Grouping, haveLengths, NoGroups, offsetIn, onWalk, refuse, tensorIn, type Walk } from './group_walk.js'

/** The kernel as one row, and the extents whose product is the length of it. */
export interface OneRow extends Pick<InRow, 'extents'> {
  readonly instance: Instance
}

/** True if a mapped kernel has chunks of rows that a launcher may find not whole, and no form for them; or planes that may be small. */
export function mayBeOneRow(mapped: MappedKernel): boolean {
  const { program, instance, axes, across, generic, vec, split, grouped } = mapped
  if (program.kind !== 'elementwise' || generic === true || across !== undefined || split !== undefined || grouped !== undefined)
    return false
  const { pieces, interval, staging, tuned = [] } = program
  if (pieces !== undefined || interval !== undefined || tuned.length > 0 || vec === 1 || axes.length === 0) return false
  const { length } = onlyPass(program).loop
  const columns = numberOf(substituteDims(length, numbersOf(instance.dims)))
  // One plane alone has few tiles.
  if (staging !== undefined) return axes.length > 1 && (columns === undefined || columns <= smallPlane.columns)
  return !isFull(length, [vec], multiplesOf(instance.kernel)) && oneRun(mapped) === undefined
}

const numbersOf = (dims: Instance['dims']): ReadonlyMap<string, Expr> =>
  new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))

/**
 * The kernel as one row; undefined if its results are no runs over all axes, or if elements that are no part of a run are read once each.
 * @param mayGather true if that is no loss
 */
export function oneRow({ kernel, types, dims: fixed }: Instance, mayGather = false): OneRow | undefined {
  const merged = isUpdating(kernel) ? undefined : elementsOf(mergeAxes({ kernel, dims: fixed }) ?? kernel)
  if (merged === undefined || merged.rows.length < 2 || merged.storedPlaces !== undefined) return undefined
  if (merged.rows.some(({ also = [] }) => also.length > 0) || merged.body.some(hasFold)) return undefined
  try {
    return rowOf(merged, types, fixed, mayGather)
  } catch (error) {
    if (error instanceof NoGroups) return undefined
    throw error
  }
}

const hasFold = (s: Stmt): boolean => stmtExprs(s).some((e) => contains(e, ({ kind }) => kind === 'fold'))

function rowOf(given: Kernel, types: Instance['types'], fixed: Instance['dims'], mayGather: boolean): OneRow {
  const numbers = numbersOf(fixed)
  const kernel = { ...given, body: given.body.map((s) => mapStmt(s, (e) => substituteDims(e, numbers))) }
  const all = kernel.rows.map((axis): Loop => ({ index: axis.index, length: substituteDims(extentOf(axis), numbers) })).reverse()
  const loops = storedLoops(kernel, all, fixed)
  const taken = takenNames(kernel)
  const at = freshName('t', taken)
  const merged = mergedAxis(
    loops.map(({ length }) => length),
    taken,
  )
  const grouping: Grouping = {
    ...{ kernel, fixed, groups: [], merged, taken, mayGather },
    lengths: loops.map(({ length }) => length),
    order: loops.map(({ index }) => index),
    elements: new Map(),
    grouped: new Map(),
    plain: new Set(),
  }
  if (!mayGather && gathers(kernel, loops, fixed)) refuse()
  const walk: Walk = { loops, at, row: undefined, places: placesOf(loops, at) }
  const body = kernel.body.map((s) => elementOf(s, walk, grouping))
  if ([...grouping.grouped.keys()].some((name) => grouping.plain.has(name))) refuse()
  const { facts: _, ...rest } = kernel
  const number = merged.extent.kind === 'const' ? { [merged.dim]: Number(merged.extent.value) } : {}
  const made: Kernel = {
    ...rest,
    name: `${kernel.name}_row`,
    dims: [...kernel.dims, merged.dim],
    computed: { ...kernel.computed, [merged.dim]: merged.extent },
    tensors: kernel.tensors.map((tensor) => grouping.grouped.get(tensor.name) ?? tensor),
    rows: [{ index: at, dim: merged.dim }],
    body,
  }
  return {
    instance: { kernel: made, types, dims: { ...fixed, ...number } },
    extents: loops.map(({ length }) => length).reverse(),
  }
}

/** All loops, innermost first, in the order in which every result runs through memory. */
function storedLoops(kernel: Kernel, all: readonly Loop[], fixed: Instance['dims']): readonly Loop[] {
  const runs = kernel.body.flatMap((s) =>
    s.kind === 'store' ? [runThrough(offsetIn(kernel, s.tensor, s.indices, fixed), all)?.loops ?? refuse()] : [],
  )
  const [first = refuse()] = runs
  if (runs.some((run) => run.some((loop, i) => loop !== first[i]))) refuse()
  return first
}

/** True if a load that is no run reads an element for each of all elements: chunks of its rows would become single elements. */
function gathers(kernel: Kernel, loops: readonly Loop[], fixed: Instance['dims']): boolean {
  const known = new Map<string, ReadonlySet<string>>(loops.map(({ index }) => [index, new Set([index])]))
  let found = false
  for (const s of kernel.body) {
    const read = (e: Expr): Set<string> => new Set([...freeNames(e)].flatMap((name) => [...(known.get(name) ?? [])]))
    for (const e of stmtExprs(s))
      visit(e, (node) => {
        if (node.kind !== 'load') return
        const offset = offsetIn(kernel, node.tensor, node.indices, fixed)
        found ||= read(offset).size === loops.length && runThrough(offset, loops) === undefined
      })
    if (s.kind === 'let') known.set(s.name, read(s.value))
  }
  return found
}

/** Digits of the place in the row: quotients of the quotient before, and their remainders. */
function placesOf(loops: readonly Loop[], at: string): ReadonlyMap<string, Expr> {
  const places = new Map<string, Expr>()
  let rest: Expr = indexVar(at)
  loops.forEach(({ index, length }, i) => {
    const isLast = i === loops.length - 1
    places.set(index, isLast ? rest : call('mod', rest, length))
    if (!isLast) rest = call('idiv', rest, length)
  })
  return places
}

function elementOf(s: Stmt, walk: Walk, grouping: Grouping): Stmt {
  if (s.kind === 'let') return { ...s, value: onWalk(s.value, walk, grouping) }
  if (s.kind !== 'store') return refuse()
  const { kernel, fixed, merged, grouped } = grouping
  const run = runThrough(offsetIn(kernel, s.tensor, s.indices, fixed), walk.loops) ?? refuse()
  if (!haveLengths(run.loops, grouping)) refuse()
  const made = groupTensor(tensorIn(kernel, s.tensor), run.base, [], merged, fixed) ?? refuse()
  grouped.set(s.tensor, made.tensor)
  return { ...s, indices: [indexVar(walk.at)], value: onWalk(s.value, walk, grouping) }
}
