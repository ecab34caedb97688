/**
 * Columns with several walks as a kernel per walk, and one that stores. The results of each are scratch, which the later ones read. Each walk can have
 * the whole grid, whereas one launch has the blocks of a cluster for each tile of columns. Runs beside the pass that finds columns (map.ts).
 *
 *     y[r, c] = x[r, c] / sum(q: exp(x[q, c] - max(q: x[q, c])))    max0[c], then sum0[c] that reads it, then y[r, c]
 */
import type { Instance } from '../../ir/instance.js'
import type { Kernel } from '../../ir/kernel.js'
import { columnsOf } from '../divided/column_reductions.js'
import { hasSections } from '../divided/divided_program.js'
import { splitWalk } from './split_launch.js'

/** The kernels in order; undefined for columns with one walk, or if a walk is no kernel of columns by itself. */
export function walkKernels(given: Instance): readonly Kernel[] | undefined {
  const kernels = kernelsFrom(given, 1)
  return kernels === undefined || kernels.length === 1 ? undefined : kernels
}

/** @param part number of the first of them */
function kernelsFrom(given: Instance, part: number): readonly Kernel[] | undefined {
  const columns = columnsOf(given)
  if (columns === undefined || hasSections(columns.program)) return [given.kernel]
  const split = splitWalk(given, part)
  const walk = split === undefined ? undefined : columnsOf({ ...given, kernel: split.first })
  if (split === undefined || walk === undefined || !hasSections(walk.program)) return undefined
  const others = kernelsFrom({ ...given, kernel: split.rest }, part + 1)
  return others === undefined ? undefined : [split.first, ...others]
}
