/**
 * Launches beside others: rows and groups as one launch beside several, all elements as one row beside many rows, long scans in pieces beside whole rows.
 * Part of the scheduler (map.ts).
 */
import type { Instance } from '../ir/instance.js'
import { extentOf } from '../ir/row_axis.js'
import { verifyKernel } from '../ir/verify.js'
import { keyOf, mapRows, type rowPasses, type See } from './map_rows.js'
import { type ColumnLaunches, extentIn, type InRows, isInGroups, type MappedKernel, onlyPass } from './mapped.js'
import type { groupRows } from './rows/group_rows.js'
import type { longScans } from './rows/long_scans.js'
import type { oneRow } from './rows/one_row.js'
import type { shortAxis } from './rows/short_axis.js'
import { reachable } from './rows/variants.js'
import { fewGroups, rowsAlone, smallPlane } from './rules.js'

type Passes = typeof rowPasses & {
  readonly longScans: typeof longScans
  readonly oneRow: typeof oneRow
  readonly shortAxis: typeof shortAxis
  readonly groupRows: typeof groupRows
}

/**
 * Long rows of scans in pieces beside the one launch.
 * @param rows the kernel as one launch
 */
export function inPieces(formed: Instance, rows: MappedKernel, passes: Passes, see: See): MappedKernel | undefined {
  const long = passes.longScans(formed)
  if (long === undefined) return undefined
  const alone = rowsAlone(long.bytes, rows.axes.length === 0 ? 'one' : long.isExact ? 'exact' : 'rounded')
  if (long.most <= alone.kept) return undefined
  const launches = [long.totals, long.scans].flatMap((kernel): MappedKernel[] => {
    verifyKernel(kernel, 'dividing scans')
    see('dividing scans', { kernel })
    const instance = { ...formed, kernel }
    const mapped = mapRows(instance, instance, passes, see)
    const { program } = mapped
    if (program.kind !== 'rows') return []
    return [{ ...mapped, program: { ...program, variants: reachable(program.variants, program.lengths ?? []) } }]
  })
  if (launches.length < 2) return undefined
  return joined(rows.instance, launches, { mapped: rows, length: long.length, ...alone, groups: undefined })
}

/** An elementwise kernel with a form in which all of its elements are one row. */
export function mapRow(formed: Instance, mapped: MappedKernel, passes: Passes, see: See): MappedKernel | undefined {
  if (mapped.program.kind !== 'elementwise') return undefined
  const { staging } = mapped.program
  const made = passes.oneRow(formed, staging !== undefined)
  if (made === undefined) return undefined
  verifyKernel(made.instance.kernel, 'making one row')
  see('making one row', { kernel: made.instance.kernel })
  const row = mapRows(made.instance, made.instance, passes, see)
  if (row.program.kind !== 'elementwise' || row.vec === 1 || row.across !== undefined || row.axes.length > 0) return undefined
  const { length } = onlyPass(mapped.program).loop
  const key = keyOf({ ...made.instance, dims: formed.dims })
  const tile = staging === undefined ? {} : { tile: { rows: extentOf(staging.axis, extentIn(mapped)), ...smallPlane } }
  const inRow = { mapped: { ...row, key }, length, width: mapped.vec, ...tile, extents: made.extents }
  return { ...mapped, split: { whole: mapped.instance, before: [], inRow } }
}

/** An elementwise kernel with a form for calls in which an axis is short. */
export function mapShortAxis(formed: Instance, mapped: MappedKernel, passes: Passes, see: See): MappedKernel | undefined {
  const written = mapped.split?.fixed === undefined ? passes.shortAxis(formed) : undefined
  if (written === undefined) return undefined
  const { instance, stated } = written
  verifyKernel(instance.kernel, 'writing a short axis out')
  see('writing a short axis out', { kernel: instance.kernel })
  const made = mapRows(instance, instance, passes, see)
  if (!isInGroups(made)) return undefined
  const each = { ...made, key: keyOf(formed) }
  if (Object.keys(stated).length === 0) return each
  const split = mapped.split ?? { whole: mapped.instance, before: [] }
  return { ...mapped, split: { ...split, fixed: [{ mapped: each, dims: stated }] } }
}

/** The kernel with its groups as rows of one launch; undefined if they are none. @param given the kernel with updates placed */
export function mapGroups(given: Instance, passes: Passes, see: See): InRows | undefined {
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
export function joined(
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
