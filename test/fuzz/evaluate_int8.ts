/**
 * Effect of int8 on values, as documented in the guide of plans: one scale per tensor, per row, or per output channel of a weight. Independent of
 * src.
 */
import { slack, unit } from './bounds.js'
import type { Held } from './evaluate.js'
import { nearestEven } from './storage.js'
import { exact, isUnknown, unknown, type Val } from './value.js'

const largest = 127

/** The int8 code of a number, and its dequantised value. @param steps number of codes, between two bounds */
function kept(x: Val, [low, high]: readonly [number, number], step: number): Val {
  if (isUnknown(x) || Number.isNaN(x.lo)) return unknown(x.v)
  const integer = (each: number): number => Math.min(Math.max(nearestEven(each), -largest), largest)
  const ends = [x.lo * low, x.lo * high, x.hi * low, x.hi * high]
  const share = 2 * slack * unit
  const [lo, hi] = [Math.min(...ends), Math.max(...ends)]
  return {
    v: integer((x.v * (low + high)) / 2) * step,
    lo: integer(lo - Math.abs(lo) * share) * step,
    hi: integer(hi + Math.abs(hi) * share) * step,
  }
}

/** Values by the magnitude that becomes 127. */
export function calibrated(held: Held, amax: number): Held {
  const steps = amax === 0 ? 0 : largest / amax
  return { ...held, values: held.values.map((x) => kept(x, [steps, steps], amax / largest)) }
}

const rowsOf = ({ shape, values }: Held): (readonly Val[])[] => {
  const length = shape.at(-1) ?? 1
  return Array.from({ length: length === 0 ? 0 : values.length / length }, (_, i) => values.slice(i * length, (i + 1) * length))
}

/** Each row by its own largest magnitude, which is known as well as its elements are. */
export function byRows(held: Held): Held {
  const values = rowsOf(held).flatMap((row) => {
    if (row.some(isUnknown)) return row.map(({ v }) => unknown(v))
    const most = (of: (x: Val) => number): number => row.reduce((top, x) => Math.max(top, of(x)), 0)
    const low = most((x) => (x.lo <= 0 && x.hi >= 0 ? 0 : Math.min(Math.abs(x.lo), Math.abs(x.hi))))
    const high = most((x) => Math.max(Math.abs(x.lo), Math.abs(x.hi)))
    const middle = most((x) => Math.abs(x.v))
    if (high === 0) return row.map(() => exact(0))
    // A largest magnitude that may be nearly zero implies nothing.
    if (low < high / 2) return row.map(({ v }) => unknown(v))
    return row.map((x): Val => {
      const made = kept(x, [largest / high, largest / low], middle / largest)
      const [a, b] = [low / middle, high / middle]
      return { v: made.v, lo: Math.min(made.lo * a, made.lo * b), hi: Math.max(made.hi * a, made.hi * b) }
    })
  })
  return { ...held, values }
}

/** A weight whose rows are output channels. Its integers are made on the host, in doubles. */
export function channels(held: Held): Held {
  const values = rowsOf({ ...held, shape: [held.shape[0] ?? 1, held.values.length / Math.max(held.shape[0] ?? 1, 1)] }).flatMap(
    (row) => {
      const amax = row.reduce((most, { v }) => Math.max(most, Math.abs(v)), 0)
      return row.map(({ v }) => exact(amax === 0 ? 0 : nearestEven((v * largest) / amax) * (amax / largest)))
    },
  )
  return { ...held, values }
}
