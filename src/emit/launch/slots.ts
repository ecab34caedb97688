/** Slots of a kernel whose threads cover an interval of an axis (src/schedule/divided/update_range.ts), as parameters, arguments and counts. */
import type CodeBlockWriter from 'code-block-writer'
import { intervalIn, type MappedKernel } from '../../schedule/mapped.js'
import type { Scope } from '../print/expression.js'
import { sumText } from '../print/narrow.js'

/** Kernel parameters for the amount of work, `work` or `rows`. */
export const workParameters = (mapped: MappedKernel, work: string): readonly string[] => [
  `const int64_t ${work}`,
  ...(intervalIn(mapped) === undefined ? [] : ['const int slots']),
]

/** Slots that a launcher counts instead of the axis's extent: as many as the maximum length of the interval. @returns all extents */
export function writeSlots(
  mapped: MappedKernel,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): readonly string[] {
  const interval = intervalIn(mapped)
  if (interval === undefined) return extents
  const at = mapped.axes.indexOf(interval.axis)
  const most = new Set([extents[at], ...interval.most.map((sum) => sumText(sum, scope))])
  writer.writeLine(`const int slots = heddle::slots_of({${[...most].join(', ')}});`)
  return extents.with(at, 'slots')
}

/** Leading arguments of the kernel in a launcher. */
export const workArguments = (mapped: MappedKernel, work: string): string =>
  intervalIn(mapped) === undefined ? work : `${work}, slots`
