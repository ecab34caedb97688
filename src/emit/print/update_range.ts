/** Source of a kernel whose threads cover an interval of an axis (src/schedule/divided/update_range.ts): each thread computes the place of its slot. */
import type CodeBlockWriter from 'code-block-writer'
import { getOwn } from '../../ir/get_own.js'
import type { Interval, Sum } from '../../schedule/divided/update_range.js'
import { intervalIn, type MappedKernel } from '../../schedule/mapped.js'
import { isZero } from '../../schedule/normalise/rewrite.js'
import { operandText, type Scope } from './expression.js'

/** Kernel parameters for the amount of work, `work` or `rows`. */
export const workParameters = (mapped: MappedKernel, work: string): readonly string[] => [
  `const int64_t ${work}`,
  ...(intervalIn(mapped) === undefined ? [] : ['const int slots']),
]

/** Narrows the interval by one bound after the other. A thread returns if nothing is left, or nothing for its slot. */
export function writeBounds({ axis, bounds }: Interval, scope: Scope, writer: CodeBlockWriter): void {
  const fixed = getOwn(scope.fixed, axis.dim)
  if (fixed === undefined) scope.used.dims.add(axis.dim)
  writer.writeLine(`heddle::Interval interval(${fixed ?? scope.names.dim(axis.dim)});`)
  for (const bound of bounds) {
    if (bound.kind === 'if') {
      writer.writeLine(`if (!${operandText(bound.part, scope)}) return;`)
      continue
    }
    writer.writeLine(`interval.${bound.kind === 'from' ? 'start_at' : 'end_before'}(${sumText(bound.place, scope)});`)
    writer.writeLine('if (interval.is_empty()) return;')
  }
  writer.writeLine('if (slot >= interval.places()) return;')
  writer.writeLine(`const int ${scope.names.value(axis.index)} = static_cast<int>(interval.from + slot);`)
}

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

/** Source of a sum, in 64 bits unless it is a single value: the sum of two places may exceed 32 bits. */
function sumText(sum: Sum, scope: Scope): string {
  const [first, ...rest] = sum
    .filter(({ value }) => !isZero(value))
    .map(({ sign, value }) => ({ sign, text: operandText(value, scope) }))
  if (first === undefined) return '0'
  if (rest.length === 0 && first.sign === '+') return first.text
  const sign = first.sign === '-' ? '-' : ''
  return [`${sign}static_cast<int64_t>(${first.text})`, ...rest.map((each) => `${each.sign} ${each.text}`)].join(' ')
}
