/** A kernel whose threads go over an interval of an axis, as text (src/schedule/interval.ts): they take the place of their slot. */
import type CodeBlockWriter from 'code-block-writer'
import { getOwn } from '../ir/get_own.js'
import type { Interval, Sum } from '../schedule/interval.js'
import { intervalIn, type MappedKernel } from '../schedule/mapped.js'
import { isZero } from '../schedule/rewrite.js'
import { operandText, type Scope } from './expression.js'

/** The kernel's parameters for how much work there is, `work` or `rows` of it. */
export const workParameters = (mapped: MappedKernel, work: string): readonly string[] => [
  `const int64_t ${work}`,
  ...(intervalIn(mapped) === undefined ? [] : ['const int slots']),
]

/** Narrows the interval by one bound after the other; a thread ends where nothing is left, or nothing for its slot. */
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

/** What a launcher counts in the place of the axis's extent: as many slots as the interval may have places. @returns all extents */
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

/** What a launcher hands to the kernel first. */
export const workArguments = (mapped: MappedKernel, work: string): string =>
  intervalIn(mapped) === undefined ? work : `${work}, slots`

/** In 64 bits where it is a sum: that of two places may be more than 32 bits hold. */
function sumText(sum: Sum, scope: Scope): string {
  const [first, ...rest] = sum
    .filter(({ value }) => !isZero(value))
    .map(({ sign, value }) => ({ sign, text: operandText(value, scope) }))
  if (first === undefined) return '0'
  if (rest.length === 0 && first.sign === '+') return first.text
  const sign = first.sign === '-' ? '-' : ''
  return [`${sign}static_cast<int64_t>(${first.text})`, ...rest.map((each) => `${each.sign} ${each.text}`)].join(' ')
}
