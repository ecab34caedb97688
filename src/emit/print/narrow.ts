/** Narrowing of an axis to an interval as CUDA source: each thread computes the place of its slot (src/schedule/divided/update_range.ts). */
import { getOwn } from '../../ir/get_own.js'
import type { Interval, Sum } from '../../schedule/divided/update_range.js'
import { isZero } from '../../schedule/normalise/rewrite.js'
import { operandText, type Scope } from './expression.js'

/** Narrows the interval by one bound after the other. A thread returns if nothing is left, or nothing for its slot. */
export function narrowLines({ axis, bounds }: Interval, scope: Scope): readonly string[] {
  const fixed = getOwn(scope.fixed, axis.dim)
  if (fixed === undefined) scope.used.dims.add(axis.dim)
  return [
    `heddle::Interval interval(${fixed ?? scope.names.dim(axis.dim)});`,
    ...bounds.flatMap((bound) =>
      bound.kind === 'if'
        ? [`if (!${operandText(bound.part, scope)}) return;`]
        : [
            `interval.${bound.kind === 'from' ? 'start_at' : 'end_before'}(${sumText(bound.place, scope)});`,
            'if (interval.is_empty()) return;',
          ],
    ),
    'if (slot >= interval.places()) return;',
    `const int ${scope.names.value(axis.index)} = static_cast<int>(interval.from + slot);`,
  ]
}

/** Source of a sum, in 64 bits unless it is a single value: the sum of two places may exceed 32 bits. */
export function sumText(sum: Sum, scope: Scope): string {
  const [first, ...rest] = sum
    .filter(({ value }) => !isZero(value))
    .map(({ sign, value }) => ({ sign, text: operandText(value, scope) }))
  if (first === undefined) return '0'
  if (rest.length === 0 && first.sign === '+') return first.text
  const sign = first.sign === '-' ? '-' : ''
  return [`${sign}static_cast<int64_t>(${first.text})`, ...rest.map((each) => `${each.sign} ${each.text}`)].join(' ')
}
