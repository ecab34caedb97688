/** Iterations of the loops of a mapped kernel at given sizes. A length that depends on data counts with the largest value that is known. */
import type { Expr } from '../ir/expr.js'
import type { RowAxis } from '../ir/kernel.js'
import { countOf } from '../ir/row_axis.js'
import { visit } from '../ir/walk.js'
import type { Interval, Sum } from '../schedule/divided/update_range.js'
import type { Loop } from '../schedule/normalise/normal.js'
import { numberAt, type Sizes } from './sizes.js'
import type { Counted } from './walk.js'

/** Iterations of a loop. */
export function iterations(length: Expr, sizes: Sizes): number {
  const known = numberAt(length, sizes)
  if (known !== undefined) return Math.max(0, known)
  // Parts of a row, of which the last may be shorter.
  const bounds =
    length.kind === 'call' && length.fn === 'minimum' ? length.args.flatMap((each) => numberAt(each, sizes) ?? []) : []
  if (bounds.length > 0) return Math.max(0, ...bounds)
  const parts: number[] = []
  visit(length, (node) => {
    if (node.kind === 'dim') parts.push(sizes.dims[node.name] ?? 0)
  })
  // Only data knows it: as long as the longest dimension that it mentions, else as any.
  return Math.max(1, ...(parts.length > 0 ? parts : Object.values(sizes.dims)))
}

export const countedLoop = ({ index, length }: Loop, sizes: Sizes): Counted => ({ index, count: iterations(length, sizes) })

/** An axis with its extent, or the largest length of the interval that is replaced in it. */
export function countedAxis(axis: RowAxis, interval: Interval | undefined, sizes: Sizes): Counted {
  const extent = countOf(axis, (dim) => sizes.dims[dim] ?? 1)
  const most = interval?.axis.index === axis.index ? interval.most.flatMap((sum) => sumAt(sum, sizes) ?? []) : []
  return { index: axis.index, count: Math.max(0, Math.min(extent, ...most)) }
}

function sumAt(sum: Sum, sizes: Sizes): number | undefined {
  let total = 0
  for (const { sign, value } of sum) {
    const part = numberAt(value, sizes)
    if (part === undefined) return undefined
    total += sign === '+' ? part : -part
  }
  return total
}
