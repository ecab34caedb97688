/**
 * Divisors of extents and offsets, as far as facts state them (`multipleOf`). They widen accesses and remove checks of alignment, so a launcher
 * refuses extents that contradict them. Facts of a dimension hold in every kernel that is made from its op.
 */
import type { Expr } from '../../ir/expr.js'
import { commonDivisor } from '../../ir/facts/multiples.js'
import type { Kernel } from '../../ir/kernel.js'

/** A number that divides the extent of each dimension in it. */
export type Multiples = ReadonlyMap<string, number>

export const noMultiples: Multiples = new Map()

/** Only stated multiples: calls may deviate from a dimension that `equal`s others, but never from them. */
export const multiplesOf = ({ facts }: Pick<Kernel, 'facts'>): Multiples =>
  new Map(
    Object.entries(facts?.dims ?? {}).flatMap(([dim, { multipleOf = 1 }]) =>
      multipleOf > 1 ? [[dim, multipleOf] as const] : [],
    ),
  )

/** The largest known number that divides an integer for all values of its variables; 0 for the number 0, which all numbers divide. */
export function divisorOf(e: Expr, multiples: Multiples): number {
  if (e.kind === 'const') return typeof e.value === 'number' && Number.isInteger(e.value) ? Math.abs(e.value) : 1
  if (e.kind === 'dim') return multiples.get(e.name) ?? 1
  if (e.kind !== 'call') return 1
  const divisors = e.args.map((arg) => divisorOf(arg, multiples))
  if (e.fn === 'mul') return divisors.reduce((product, each) => product * each, 1)
  return e.fn === 'add' || e.fn === 'sub' ? divisors.reduce(commonDivisor, 0) : 1
}

/** True if a value is a multiple of a number for all values of its variables. */
export const isMultiple = (e: Expr, of: number, multiples: Multiples = noMultiples): boolean => divisorOf(e, multiples) % of === 0

/** True if facts leave only full chunks in a loop: every width divides its length. */
export const isFull = (length: Expr, widths: readonly number[], multiples: Multiples): boolean =>
  multiples.size > 0 && length.kind !== 'const' && widths.every((width) => isMultiple(length, width, multiples))
