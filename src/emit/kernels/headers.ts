/** Device headers of the source of a row program. */
import { isUpdating } from '../../ir/update.js'
import { hasCounts, liesApart, requestsVectors, sharesGroups } from '../../loop/kernel_loops.js'
import { storesAlone } from '../../schedule/divided/divided_program.js'
import { heldLoads } from '../../schedule/divided/held_loads.js'
import { declaring, isInGroups, isInSpans, launchesBeside, type MappedKernel, stepsOf } from '../../schedule/mapped.js'
import { headersOf } from '../constructs/index.js'
import { apartHeader } from '../print/apart.js'
import { scalarHeaders } from '../print/scalar_headers.js'
import { userMonoidHeaders } from '../print/user_monoids.js'

/** True if kernels take their width as an argument. */
export const hasOwnWidths = ({ generic, program }: MappedKernel): boolean =>
  generic === true || (program.kind === 'elementwise' && program.staging !== undefined)

/** True if the source needs tuned.cuh. */
const isTuned = ({ generic, program }: MappedKernel): boolean =>
  generic === true || (program.kind === 'rows' && program.variants.some(({ limit }) => limit.tuned !== undefined))

/** True if blocks of the grid compute sums that are shifted by a maximum. */
const hasShifts = ({ instance: { kernel } }: MappedKernel): boolean =>
  kernel.body.some((s) => s.kind === 'merge' && s.monoid.shift !== undefined)

/** Device headers other than kernel.cuh, in alphabetical order. */
export function headersOfMapped(mapped: MappedKernel): string[] {
  const { program, instance, split } = mapped
  return [
    ...new Set([
      ...headersOf(stepsOf(mapped)),
      ...userMonoidHeaders(declaring(mapped)),
      ...scalarHeaders(declaring(mapped)),
      ...(program.kind === 'columns' ? [storesAlone(program) ? 'stored_columns.cuh' : 'columns.cuh'] : []),
      ...(program.kind === 'columns' && heldLoads(program).length > 0 ? ['held_rows.cuh'] : []),
      ...(program.kind === 'totals' ? [hasShifts(mapped) ? 'shifted_totals.cuh' : 'totals.cuh'] : []),
      ...(program.kind === 'elementwise' && program.staging !== undefined ? ['stage.cuh'] : []),
      ...(sharesGroups(mapped) ? ['group_values.cuh'] : []),
      ...(liesApart(mapped) ? [apartHeader] : []),
      ...(mapped.program.kind === 'rows' ? ['row_block.cuh'] : []),
      ...(hasCounts(mapped) ? ['count.cuh'] : []),
      ...(isInSpans(mapped) ? ['span.cuh'] : []),
      ...(isInGroups(mapped) ? ['groups.cuh'] : []),
      ...(requestsVectors(mapped) ? ['request.cuh'] : []),
      ...(isTuned(mapped) ? ['tuned.cuh'] : []),
      ...(isUpdating(instance.kernel) ? ['update.cuh'] : []),
      ...(split === undefined ? [] : ['split.cuh', ...launchesBeside(split).flatMap(headersOfMapped)]),
    ]),
  ].sort()
}
