/** Price of a row kernel, by the launches that its schedule makes of it. */
import type { Expr } from '../ir/expr.js'
import { type Instance, rankedDims } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { structuralHash } from '../ir/structural_hash.js'
import { rankedCounts } from '../ir/top_k.js'
import { mapKernel } from '../schedule/map.js'
import { type ColumnLaunches, type InRow, type MappedKernel, suitsSizes } from '../schedule/mapped.js'
import type { CostDevice } from './device.js'
import { countedAxis, iterations } from './extents.js'
import { groupedCosts } from './grouped.js'
import { type LaunchCost, launchCost } from './launch.js'
import type { Sizes } from './sizes.js'
import { product } from './walk.js'

/** Prices of the launches of a mapped kernel, in order of execution. Dimensions that the instance fixes have these extents. */
export function partCosts(mapped: MappedKernel, sizes: Sizes, device: CostDevice): readonly LaunchCost[] {
  if (mapped.grouped !== undefined) return groupedCosts(mapped, mapped.grouped, sizes, device)
  const fixed = { ...sizes, dims: { ...sizes.dims, ...mapped.instance.dims } }
  const resident = new Set<string>()
  const parts = launchesOf(mapped, fixed)
  let moved = 0
  return parts.map((part) => {
    const cost = launchCost(part, withComputed(part, fixed), device, moved <= device.rates.cacheBytes / 2 ? resident : new Set())
    moved = Math.max(moved, cost.bytesRead + cost.bytesWritten)
    for (const { name } of part.instance.kernel.tensors) resident.add(name)
    return cost
  })
}

/** Sizes with the extents that a schedule computes from them. */
function withComputed({ instance: { kernel } }: MappedKernel, sizes: Sizes): Sizes {
  const dims = { ...sizes.dims }
  for (const [name, extent] of Object.entries(kernel.computed ?? {})) dims[name] = iterations(extent, { ...sizes, dims })
  return { ...sizes, dims }
}

/** Launches of a kernel at these sizes: one in place of several where groups of points suit rows (`suit_rows`, native/device/split.cuh). */
export function launchesOf({ split, ...last }: MappedKernel, sizes: Sizes): readonly MappedKernel[] {
  if (split === undefined) return [last]
  const { inRows, inRow, before, fixed } = split
  const suited = fixed?.find((each) => suitsSizes(each, sizes.dims))
  if (suited !== undefined) return [suited.mapped]
  if (inRow !== undefined && suitsRow(inRow, sizes)) return [inRow.mapped]
  if (split.columns !== undefined && suitColumns(split.columns, sizes)) return split.columns.launches
  if (inRows === undefined) return [...before, last]
  const { mapped, length, kept, groups, many = groups } = inRows
  const elements = iterations(length, sizes)
  const columns = mapped.program.kind === 'columns' ? iterations(mapped.program.length, sizes) : 1
  const rows = columns * product(mapped.axes.map((axis) => countedAxis(axis, undefined, sizes)))
  return elements <= kept || (many !== undefined && rows >= many) ? [mapped] : [...before, last]
}

/** True for rows that are no whole chunks, or for small planes, whose elements an index of one row can count. */
function suitsRow({ length, width, tile, extents }: InRow, sizes: Sizes): boolean {
  const columns = iterations(length, sizes)
  const isSmall = tile !== undefined && columns <= tile.columns && columns * iterations(tile.rows, sizes) <= tile.places
  return (tile === undefined ? columns % width !== 0 : isSmall) && elementsOf(extents, sizes) < 2 ** 31
}

const elementsOf = (extents: readonly Expr[], sizes: Sizes): number =>
  extents.reduce((all, extent) => all * iterations(extent, sizes), 1)

/** Fewest elements for launches over the columns of groups (`suit_columns`, native/device/stored_columns.cuh). */
const fewestOfColumns = 2 ** 20

function suitColumns({ length, most, width, extents }: ColumnLaunches, sizes: Sizes): boolean {
  const columns = iterations(length, sizes)
  const elements = elementsOf(extents, sizes)
  return columns <= most && columns % width !== 0 && elements >= fewestOfColumns
}

/** Schedules by kernel and types: a search prices kernels that differ in their names alone. */
const schedules = new Map<string, MappedKernel>()

/** The mapped kernel of storage types, with as many ranked elements as sizes have. */
export function scheduled(kernel: Kernel, types: Instance['types'], { dims }: Sizes): MappedKernel {
  const ranked = rankedDims(kernel).map((dim) => {
    const wanted = dims[dim] ?? 1
    return [dim, rankedCounts.find((count) => count >= wanted) ?? rankedCounts.at(-1) ?? wanted] as const
  })
  const instance: Instance = { kernel, types, dims: Object.fromEntries(ranked) }
  const { source: _, facts, name: __, ...rest } = kernel
  const key = structuralHash([rest, facts?.dims, types, instance.dims])
  const known = schedules.get(key) ?? mapKernel(instance)
  schedules.set(key, known)
  return known
}

/** Prices of the launches that compute a kernel. @throws `UpdateConflict` for one whose updates no schedule can place, which is refused elsewhere */
export const kernelParts = (kernel: Kernel, types: Instance['types'], sizes: Sizes, device: CostDevice): readonly LaunchCost[] =>
  partCosts(scheduled(kernel, types, sizes), sizes, device)
