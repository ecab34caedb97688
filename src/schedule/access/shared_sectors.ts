/**
 * Rows beside one another in memory, such as columns that are scanned or ranked: neighbouring elements of a sector belong to different rows. A block
 * then computes all rows of a sector, so that its cache reads the sector once. The number of rows in a block changes no result.
 */
import { dtypeInfo } from '../../ir/dtype.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import { visit } from '../../ir/walk.js'
import { scheduledOf } from '../constructs/index.js'
import type { Variant } from '../mapped.js'
import { type NormalKernel, rowExprs } from '../normalise/normal.js'
import { rowsAreNeighbours } from './coalescing.js'

/** Smallest transfer of memory in bytes. */
const sectorBytes = 32
const warp = 32

/** Elements of a sector of the smallest tensor that a kernel reads; 1 unless its rows are neighbours. */
export function rowsOfSector(instance: Instance, kernel: NormalKernel): number {
  if (!rowsAreNeighbours(instance, kernel)) return 1
  const read = new Set<string>()
  for (const expr of [
    ...[...kernel.rows.values()].flatMap(rowExprs),
    ...kernel.statements.flatMap((s) => scheduledOf(s).values(s)),
  ])
    visit(expr, (node) => {
      if (node.kind === 'load') read.add(node.tensor)
    })
  const bytes = instance.kernel.tensors.flatMap(({ name, dtype }) =>
    read.has(name) ? [dtypeInfo[resolveDType(dtype, instance.types)].bytes] : [],
  )
  // Blocks of more than 16 warps leave a warp few registers.
  return Math.min(16, sectorBytes / Math.min(...bytes, sectorBytes))
}

/** A variant of warps with at least as many rows in a block; others as they are. */
export function withRows(variant: Variant, rows: number): Variant {
  const { team } = variant
  if (team.kind !== 'warp' || team.lanes !== warp || team.rowsPerBlock >= rows) return variant
  return { ...variant, team: { ...team, rowsPerBlock: rows } }
}
