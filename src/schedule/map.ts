/**
 * The scheduler: choose forms of operations, place updates, find the programs that an op's launches are; map_rows.ts schedules rows and elements,
 * map_beside.ts launches beside others. Pure: the same instance and tuning map to the same result.
 */

import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { extentOf } from '../ir/row_axis.js'
import { placeUpdates } from '../ir/update.js'
import { verifyKernel } from '../ir/verify.js'
import type { Schedule } from '../lang/plan.js'
import { columnsOf } from './divided/column_reductions.js'
import { passesOf as dividedPassesOf, loadsChunks } from './divided/divided_program.js'
import { totalsOf } from './divided/full_reductions.js'
import { storedColumns } from './divided/stored_columns.js'
import { windowsOf } from './divided/window_reductions.js'
import { groupedMatmul } from './grouped/grouped_matmul.js'
import { inPieces, joined, mapGroups, mapRow, mapShortAxis } from './map_beside.js'
import { keyOf, mapRows, rowPasses, type See } from './map_rows.js'
import { mapWindows } from './map_windows.js'
import { type ColumnLaunches, extentIn, type InRows, type MappedKernel } from './mapped.js'
import { chooseForms } from './normalise/forms.js'
import { mergeAxes } from './normalise/merge_axes.js'
import { substituteDims } from './normalise/rewrite.js'
import { groupColumns } from './rows/group_columns.js'
import { groupRows } from './rows/group_rows.js'
import { inFewestLevels, isExact, longRows } from './rows/long_rows.js'
import { longScans } from './rows/long_scans.js'
import { mayBeOneRow, oneRow } from './rows/one_row.js'
import { shortAxis } from './rows/short_axis.js'
import { splitLaunch } from './rows/split_launch.js'
import { walkKernels } from './rows/walk_kernels.js'
import { fewestWalkedChunks, mostCombinedColumns, mostWalkedRows, rowsAlone } from './rules.js'
import { applySchedule } from './tuning/planned.js'
import { applyTuning, type Tuning } from './tuning/tuning.js'
import { verifyForms } from './verify/forms.js'
import { verifyMapped } from './verify/mapped.js'
import { windowsWrittenOut } from './windows/windows.js'

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
  ...rowPasses,
  applySchedule,
  applyTuning,
  longRows,
  longScans,
  oneRow,
  shortAxis,
} as const

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
  see: See = () => undefined,
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
  if (long !== undefined) return verified(long, 'dividing long rows')
  if (!mayBeOneRow(tuned)) return tuned
  const inRow = mapRow(formed, tuned, passes, see)
  const made = inRow === undefined ? tuned : verified(inRow, 'making one row')
  const written = mapShortAxis(formed, made, passes, see)
  return written === undefined ? made : verified(written, 'writing a short axis out')
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
    inOnePass: () => undefined,
    longRows: () => undefined,
    longScans: () => undefined,
    oneRow: () => undefined,
    shortAxis: () => undefined,
    inGroups: () => undefined,
  })

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
    const key = keyOf(instance)
    const { made, spans } = mapWindows(windows, passes, see)
    const inSpans = spans.map((each) => ({ ...each, mapped: { ...each.mapped, key } }))
    if (Object.keys(stated).length === 0)
      return { ...made, key, ...(spans.length === 0 ? {} : { split: { whole: instance, before: [], fixed: inSpans } }) }
    const general = mapByRules(instance, { ...passes, windowsWrittenOut: () => undefined }, see)
    const { whole, before, inRows } = general.split ?? { whole: instance, before: [] }
    const fixed = [...inSpans, { mapped: { ...made, key }, dims: stated }]
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
  const long = inFewestLevels(formed, passes)
  if (long === undefined) return inPieces(formed, rows, passes, see)
  const alone = rowsAlone(long.bytes, axes.length === 0 ? 'one' : isExact(long) ? 'exact' : 'rounded')
  if (long.most <= alone.kept) return undefined
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
  return joined(rows.instance, [...levels, ...last], { mapped: rows, length: long.length, ...alone, groups: undefined })
}
