/**
 * The scheduler: choose forms of operations, place updates, normalise, order into passes, simplify, choose the variants. Pure: the same instance and tuning map to the same
 * result.
 */

import type { Expr } from '../ir/expr.js'
import { type Instance, instanceKey } from '../ir/instance.js'
import type { Kernel, RowAxis } from '../ir/kernel.js'
import { extentOf } from '../ir/row_axis.js'
import { placeUpdates } from '../ir/update.js'
import { verifyKernel } from '../ir/verify.js'
import type { Schedule } from '../lang/plan.js'
import { rowsAreNeighbours, scalarsAreNeighbours } from './access/coalescing.js'
import { rowsOfSector, withRows } from './access/shared_sectors.js'
import { stageLoads } from './access/staged_loads.js'
import { columnsOf } from './divided/column_reductions.js'
import { passesOf as dividedPassesOf, loadsChunks } from './divided/divided_program.js'
import { totalsOf } from './divided/full_reductions.js'
import { storedColumns } from './divided/stored_columns.js'
import { insideOf, intervalOf } from './divided/update_range.js'
import { windowsOf } from './divided/window_reductions.js'
import { groupedMatmul } from './grouped/grouped_matmul.js'
import { type ColumnLaunches, extentIn, type InRows, type MappedKernel, type Variant } from './mapped.js'
import { chooseForms } from './normalise/forms.js'
import { isHostExpr } from './normalise/host_expr.js'
import { mergeAxes } from './normalise/merge_axes.js'
import { freshName, type NormalKernel } from './normalise/normal.js'
import { normalise } from './normalise/normalise.js'
import { planSteps, type Step } from './normalise/passes.js'
import { substituteDims } from './normalise/rewrite.js'
import { simplifySteps } from './normalise/simplify.js'
import { groupColumns } from './rows/group_columns.js'
import { groupRows } from './rows/group_rows.js'
import { longRows } from './rows/long_rows.js'
import { isCarried } from './rows/recurrence_variants.js'
import { hasMemory } from './rows/resident_rows.js'
import { splitLaunch } from './rows/split_launch.js'
import { walkKernels } from './rows/walk_kernels.js'
import {
  elementwiseThreads,
  fewestWalkedChunks,
  fewGroups,
  isLegal,
  isProfitable,
  longestRow,
  maxVec,
  mostCombinedColumns,
  mostWalkedRows,
  rowVariants,
  vectorWidth,
} from './rules.js'
import { applySchedule } from './tuning/planned.js'
import { applyTuning, type Tuning } from './tuning/tuning.js'
import { verifyForms } from './verify/forms.js'
import { verifyMapped } from './verify/mapped.js'
import { verifyNormal, verifySteps } from './verify/verify.js'
import { type Windows, windowsWrittenOut } from './windows/windows.js'

/** Passes of the schedule, in order. Each is verified where it ends; a test replaces each with a faulty one. */
export const schedulePasses = {
  chooseForms,
  groupedMatmul,
  placeUpdates,
  windowsWrittenOut,
  columnsOf,
  walkKernels,
  splitLaunch,
  groupColumns,
  storedColumns,
  groupRows,
  windowsOf,
  totalsOf,
  mergeAxes,
  normalise,
  planSteps,
  simplifySteps,
  chooseVariants,
  stageLoads,
  intervalOf,
  applySchedule,
  applyTuning,
  longRows,
} as const

/** Result of a pass: a kernel of the IR, steps in execution order, or a mapped kernel. */
export interface SchedulePassResult {
  readonly kernel?: Kernel
  readonly steps?: readonly Step[]
  readonly mapped?: MappedKernel
}

/**
 * Maps one instance of a kernel. Measured variants of a tuning file come first, then the schedule of a plan, then the default rules.
 * @param see receives the result of each pass
 * @throws usage `plan.schedule` for a schedule that the kernel cannot have; usage `tuning.choice`, `tuning.order` for an entry that the kernel cannot have
 */
export function mapKernel(
  instance: Instance,
  tuning?: Tuning,
  schedule?: Schedule,
  passes: typeof schedulePasses = schedulePasses,
  see: (pass: string, made: SchedulePassResult) => void = () => undefined,
): MappedKernel {
  const verified = (mapped: MappedKernel, pass: string): MappedKernel => {
    verifyMapped(mapped, pass)
    see(pass, { mapped })
    return mapped
  }
  const formed = passes.chooseForms(instance)
  verifyForms(instance.kernel, formed.kernel)
  see('choosing forms', { kernel: formed.kernel })
  const grouped = schedule === undefined ? passes.groupedMatmul(formed) : undefined
  if (grouped !== undefined) {
    verifyKernel(grouped.epilogue, 'finding a grouped matmul')
    see('finding a grouped matmul', { kernel: grouped.epilogue })
  }
  const mapped = mapByRules(formed, passes, see)
  const ruled = verified(grouped === undefined ? mapped : { ...mapped, grouped }, 'choosing variants')
  const asked = schedule === undefined ? ruled : verified(passes.applySchedule(ruled, schedule), 'applying the plan')
  const tuned = tuning === undefined ? asked : verified(passes.applyTuning(asked, tuning), 'applying measurements')
  const long = inLevels(formed, tuned, passes, see)
  return long === undefined ? tuned : verified(long, 'dividing long rows')
}

/** Maps a kernel that is part of another, such as the prologue of a matmul: as one launch over the axes of the other, in the forms of the whole. */
export const mapPart = (instance: Instance): MappedKernel =>
  mapKernel(instance, undefined, undefined, {
    ...schedulePasses,
    chooseForms: (part) => part,
    groupedMatmul: () => undefined,
    windowsWrittenOut: () => undefined,
    splitLaunch: () => undefined,
    mergeAxes: () => undefined,
    longRows: () => undefined,
  })

type See = (pass: string, made: SchedulePassResult) => void

/** @param part number that the first launch of a split kernel has; undefined for a whole op */
function mapByRules(instance: Instance, passes: typeof schedulePasses, see: See, part?: number): MappedKernel {
  const given: Instance = { ...instance, kernel: passes.placeUpdates(instance.kernel) }
  if (given.kernel !== instance.kernel) verifyKernel(given.kernel, 'placing updates')
  see('placing updates', { kernel: given.kernel })
  const windows = part === undefined ? passes.windowsWrittenOut(given) : undefined
  if (windows !== undefined) {
    const { instance: written, stated } = windows
    verifyKernel(written.kernel, 'writing windows out')
    see('writing windows out', { kernel: written.kernel })
    const made = mapWindows(windows, passes, see)
    if (Object.keys(stated).length === 0) return { ...made, key: keyOf(instance) }
    const general = mapByRules(instance, { ...passes, windowsWrittenOut: () => undefined }, see)
    const { whole, before, inRows } = general.split ?? { whole: instance, before: [] }
    const fixed = { mapped: { ...made, key: keyOf(instance) }, dims: stated }
    return { ...general, split: { whole, before, ...(inRows === undefined ? {} : { inRows }), fixed } }
  }
  const columns = passes.columnsOf(given)
  if (columns !== undefined) {
    const { kernel, axes, vec, program } = columns
    verifyKernel(kernel, 'finding columns')
    const mapped: MappedKernel = { instance, key: keyOf(instance), axes, vec, program }
    return part === undefined ? inWalks(given, mapped, passes, see) : mapped
  }
  const first = part ?? 1
  const split = passes.splitLaunch(given, first)
  if (split !== undefined) {
    const inRows = part === undefined ? mapGroups(given, passes, see) : undefined
    const launches = [split.first, split.rest].map((kernel, i) => {
      verifyKernel(kernel, 'splitting launches')
      see('splitting launches', { kernel })
      return mapByRules({ ...given, kernel }, passes, see, first + i)
    })
    const columns = part === undefined ? columnLaunches(given, passes, see) : undefined
    return joined(instance, launches, inRows, columns)
  }
  const summed = passes.windowsOf(given)
  if (summed !== undefined) {
    verifyKernel(summed, 'finding windows')
    see('finding windows', { kernel: summed })
  }
  const totals = summed === undefined ? passes.totalsOf(given) : undefined
  if (totals !== undefined) return { instance, key: keyOf(instance), ...totals }
  const found = summed === undefined ? given : { ...given, kernel: summed }
  const merged = passes.mergeAxes(found)
  if (merged !== undefined) {
    verifyKernel(merged, 'merging axes')
    see('merging axes', { kernel: merged })
  }
  return mapRows(instance, merged === undefined ? found : { ...found, kernel: merged }, passes, see)
}

/** Launches over the columns of groups; undefined if groups are none, or have more columns than a thread may combine. */
function columnLaunches(given: Instance, passes: typeof schedulePasses, see: See): ColumnLaunches | undefined {
  const launches: MappedKernel[] = []
  let rest: Pick<Instance, 'kernel' | 'dims'> = given
  let columns: Expr | undefined
  for (;;) {
    const split = passes.splitLaunch({ ...given, ...rest }, launches.length + 1)
    const groups = split && passes.groupColumns({ ...given, ...rest, kernel: split.first }, split.rest)
    if (groups === undefined) break
    verifyKernel(groups.columns.kernel, 'dividing groups into columns')
    see('dividing groups into columns', { kernel: groups.columns.kernel })
    launches.push(mapByRules({ ...given, ...groups.columns }, passes, see, launches.length + 1))
    columns = groups.length
    rest = groups.rest
  }
  const isLong = columns?.kind === 'const' && Number(columns.value) > mostCombinedColumns
  const stored = columns === undefined || isLong ? undefined : passes.storedColumns({ ...given, ...rest })
  if (columns === undefined || stored === undefined) return undefined
  const { kernel, dims, axes, vec, program } = stored
  verifyKernel(kernel, 'storing columns')
  see('storing columns', { kernel })
  const instance = { ...given, kernel, dims }
  const last: MappedKernel = { instance, key: keyOf({ ...given, dims: given.dims }), axes, vec, program }
  const [reduced] = launches
  const walk = reduced?.program.kind === 'columns' ? reduced.program : undefined
  if (reduced === undefined || walk === undefined) return undefined
  const outer = reduced.axes.map((axis) => extentOf(axis, extentIn({ instance: given })))
  const extents = [
    ...outer,
    ...dividedPassesOf(walk)
      .slice(0, 1)
      .flatMap(({ loops }) => loops.map(({ length }) => length)),
    walk.length,
  ]
  const computed = new Map(Object.entries(reduced.instance.kernel.computed ?? {}))
  return {
    launches: [...launches, last],
    length: columns,
    most: mostCombinedColumns,
    width: reduced.vec,
    extents: extents.map((extent) => substituteDims(extent, computed)),
  }
}

/** Windows that are written out, with a version for those inside of the tensor where each thread reads single elements. */
function mapWindows({ instance, inside }: Windows, passes: typeof schedulePasses, see: See): MappedKernel {
  const made = mapRows(instance, instance, passes, see)
  const { program } = made
  if (inside === undefined || program.kind !== 'elementwise' || made.vec > 1 || program.pieces !== undefined) return made
  verifyKernel(inside.kernel, 'finding windows inside')
  const within = { ...instance, kernel: inside.kernel }
  const version = mapRows(within, within, passes, see)
  if (version.program.kind !== 'elementwise' || version.vec !== made.vec || version.program.staging !== undefined) return made
  const pieces = {
    index: freshName('chunk', new Set(instance.kernel.dims)),
    bounds: [],
    when: inside.when,
    steps: version.program.steps,
  }
  return { ...made, program: { ...program, pieces } }
}

/**
 * Columns with several walks as a launch per walk, beside the one launch: blocks of one cluster divide the rows of a tile, and wait for each other in
 * every walk, so few columns of many rows leave most of the device idle.
 * @param columns the kernel as one launch
 */
function inWalks(given: Instance, columns: MappedKernel, passes: typeof schedulePasses, see: See): MappedKernel {
  const kernels = columns.program.kind === 'columns' ? passes.walkKernels(given) : undefined
  const length = columns.program.kind === 'columns' ? dividedPassesOf(columns.program)[0]?.loops[0]?.length : undefined
  const isShort = length?.kind === 'const' && Number(length.value) <= mostWalkedRows
  if (kernels === undefined || length === undefined || isShort) return columns
  const launches = kernels.map((kernel, i) => {
    verifyKernel(kernel, 'splitting walks')
    see('splitting walks', { kernel })
    return mapByRules({ ...given, kernel }, passes, see, i + 1)
  })
  const one: InRows = { mapped: columns, length, kept: mostWalkedRows, groups: fewestWalkedChunks * columns.vec }
  return joined(columns.instance, launches, one)
}

/**
 * Rows as several launches beside the one, for rows that are so long that a block each would leave most of the device idle.
 * @param rows the kernel as one launch
 */
function inLevels(formed: Instance, rows: MappedKernel, passes: typeof schedulePasses, see: See): MappedKernel | undefined {
  const { program, axes } = rows
  // A single variant is one that a plan asks for, or suits rows whose length only the device knows.
  if (program.kind !== 'rows' || program.interval !== undefined || program.variants.length < 2) return undefined
  if (rows.split !== undefined || rows.grouped !== undefined) return undefined
  const long = passes.longRows(formed)
  if (long === undefined) return undefined
  const kept = longestRow(long.bytes, axes.length === 0 || (long.levels.length === 1 && long.last === undefined))
  if (long.most <= kept) return undefined
  const given = (kernel: Kernel): Instance => {
    verifyKernel(kernel, 'finding long rows')
    see('finding long rows', { kernel })
    return { ...formed, kernel }
  }
  const levels = long.levels.map(given).flatMap((instance): MappedKernel[] => {
    const totals = totalsOf(instance, 'long')
    return totals === undefined || !loadsChunks(totals.program) ? [] : [{ instance, key: keyOf(instance), ...totals }]
  })
  const last = long.last === undefined ? [] : [mapByRules(given(long.last), passes, see, levels.length + 1)]
  if (levels.length < long.levels.length || last.some(({ program: { kind } }) => kind !== 'elementwise')) return undefined
  return joined(rows.instance, [...levels, ...last], { mapped: rows, length: long.length, kept, groups: undefined })
}

/** The kernel with its groups as rows of one launch; undefined if they are none. @param given the kernel with updates placed */
function mapGroups(given: Instance, passes: typeof schedulePasses, see: See): InRows | undefined {
  const grouped = passes.groupRows(given)
  if (grouped === undefined) return undefined
  const { instance, length } = grouped
  verifyKernel(instance.kernel, 'merging the axes of groups')
  see('merging the axes of groups', { kernel: instance.kernel })
  const mapped = mapRows(instance, instance, passes, see, 'groups')
  if (mapped.program.kind !== 'rows') return undefined
  const kept = Math.max(0, ...mapped.program.variants.flatMap(({ limit }) => limit.length ?? []))
  return { mapped: { ...mapped, key: keyOf({ ...instance, dims: given.dims }) }, length, kept, groups: fewGroups }
}

/** The launches of an instance as one: the last of them, with those in front of it. @param inRows one launch in place of all */
function joined(
  whole: Instance,
  launches: readonly MappedKernel[],
  inRows: InRows | undefined,
  columns?: ColumnLaunches,
): MappedKernel {
  const all = launches.flatMap(({ split, ...launch }): MappedKernel[] => [...(split?.before ?? []), launch])
  const last = all.at(-1)
  if (last === undefined) throw new Error(`internal: ${whole.kernel.name} has no launch`)
  const besides = { ...(inRows === undefined ? {} : { inRows }), ...(columns === undefined ? {} : { columns }) }
  return { ...last, key: keyOf(whole), split: { whole, before: all.slice(0, -1), ...besides } }
}

/** Rows of an op, or groups of several axes, which are long. */
type Rows = 'any' | 'groups'

/** Maps a kernel whose rows, or elements, are computed by threads of their own. @param placed the kernel with updates placed, windows found and axes merged */
function mapRows(
  instance: Instance,
  placed: Instance,
  passes: typeof schedulePasses,
  see: See,
  rows: Rows = 'any',
): MappedKernel {
  const normal = (of: Instance, chunks: 'any' | 'in pieces'): NormalKernel => {
    const kernel = passes.normalise(of, chunks)
    verifyNormal(kernel, of, 'normalising')
    return kernel
  }
  const steps = (kernel: NormalKernel, keep: boolean): Step[] => {
    const ordered = passes.planSteps(kernel, keep)
    verifySteps(ordered, kernel, placed, 'ordering passes')
    see(keep ? 'ordering passes, rows kept' : 'ordering passes, rows read again', { steps: ordered })
    const simplified = passes.simplifySteps(kernel, ordered)
    verifySteps(simplified, kernel, placed, 'simplifying')
    see(keep ? 'simplifying, rows kept' : 'simplifying, rows read again', { steps: simplified })
    return simplified
  }
  const { kernel, asked, interval } = within(placed, passes, (of) => normal(of, 'any'))
  const chosen = passes.chooseVariants(instance, kernel, (keep) => steps(kernel, keep), rows)
  const mapped = interval === undefined ? chosen : { ...chosen, program: { ...chosen.program, interval } }
  if (interval !== undefined) {
    verifyMapped(mapped, 'finding the interval')
    see('finding the interval', { kernel: asked.kernel })
  }
  if (mapped.program.kind !== 'elementwise') return mapped
  const { program, across } = mapped
  const staged = interval === undefined && across === undefined ? passes.stageLoads(placed, kernel, program.steps) : undefined
  if (staged !== undefined) return { ...mapped, program: { ...program, ...staged } }
  // Single elements of windows are read as the body has them.
  if (mapped.vec === 1 && placed.kernel.storedPlaces !== undefined) return mapped
  const inPieces = normal(asked, 'in pieces')
  // Without a boundary inside the row, the general steps already apply.
  if (inPieces.pieces === undefined || inPieces.pieces.bounds.size === 0 || loadedRows(inPieces) <= loadedRows(kernel))
    return mapped
  const { index, bounds } = inPieces.pieces
  const pieces = { index, bounds: [...bounds.values()], steps: steps(inPieces, false) }
  return { ...mapped, program: { ...program, pieces } }
}

/**
 * The kernel inside the interval that it replaces, if there is one. Steps of a recurrence may need their neighbours. Unconditional loads of rows
 * would all be in flight at once, for which there are too few registers.
 */
function within(placed: Instance, { intervalOf }: typeof schedulePasses, normal: (given: Instance) => NormalKernel) {
  const whole = normal(placed)
  const interval = [...whole.rows.values()].some(isCarried)
    ? undefined
    : intervalOf(placed.kernel, besideNeighbours(whole), placed.dims)
  if (interval === undefined || !whole.elementwise) return { kernel: whole, asked: placed, interval }
  const asked = { ...placed, kernel: insideOf(placed.kernel, interval.bounds) }
  const kernel = normal(asked)
  // Without its conditions, neighbouring threads may run along another axis.
  const axis = besideNeighbours(kernel).find(({ index }) => index === interval.axis.index)
  return axis === undefined ? { kernel: whole, asked: placed } : { kernel, asked, interval: { ...interval, axis } }
}

/** Axes other than the one that neighbouring threads run along. */
const besideNeighbours = ({ axes, across }: NormalKernel): readonly RowAxis[] => axes.filter((axis) => axis !== across)

/** Number of rows that are read in chunks. */
const loadedRows = ({ rows }: NormalKernel): number => [...rows.values()].filter(({ kind }) => kind === 'loaded').length

const keyOf = ({ kernel, types, dims }: Instance): string => instanceKey(kernel.name, types, dims)

/** Chooses the widths, teams and variants of a kernel by the rules. */
function chooseVariants(
  instance: Instance,
  kernel: NormalKernel,
  steps: (keep: boolean) => readonly Step[],
  rows: Rows = 'any',
): MappedKernel {
  // In a recurrence with one thread per row, threads load the elements of several steps before they compute the first.
  const areNeighbours = [...kernel.rows.values()].some(isCarried) && rowsAreNeighbours(instance, kernel)
  const width = vectorWidth(instance, kernel)
  const vec = areNeighbours && width === 1 ? maxVec : width
  const base = {
    instance,
    key: keyOf(instance),
    axes: kernel.axes,
    across: kernel.across,
    vec,
  }
  if (kernel.elementwise) return { ...base, program: { kind: 'elementwise', steps: steps(false), threads: elementwiseThreads } }
  const kept = steps(true)
  const lengths = hostLengths(kernel)
  const isUsable = (each: Variant): boolean =>
    isLegal(each.team, kept) && hasMemory(each, kept, each.vec ?? vec) && isProfitable(each, kept, vec)
  const adjacent = areNeighbours ? 1 : rowsOfSector(instance, kernel)
  const variants = rowVariants(kept, vec, lengths !== undefined, {
    areNeighbours: areNeighbours || scalarsAreNeighbours(instance, kernel),
    areGroups: rows === 'groups',
  }).flatMap((each) => [withRows(each, adjacent), each].find(isUsable) ?? [])
  return { ...base, program: { kind: 'rows', kept, reread: steps(false), lengths, variants } }
}

/** Lengths of all loops, or upper bounds of them; undefined unless they follow from dimensions and attributes alone. */
function hostLengths(kernel: NormalKernel): readonly Expr[] | undefined {
  const bounds = kernel.loops.flatMap((loop) => hostBound(loop.length) ?? [])
  const bins = kernel.statements.flatMap((s) => (s.kind === 'counts' ? [s.bins] : []))
  return bounds.length === kernel.loops.length ? [...bounds, ...bins.filter(isHostExpr)] : undefined
}

/** A length that follows from dimensions and attributes, or an upper bound of it: that of a part of a row, of which the last may be shorter. */
function hostBound(length: Expr): Expr | undefined {
  if (isHostExpr(length)) return length
  return length.kind === 'call' && length.fn === 'minimum' ? length.args.find(isHostExpr) : undefined
}
