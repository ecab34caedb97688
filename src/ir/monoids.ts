/**
 * The associative combinations that a row reduction or scan can use, and the histogram of a row. Like the intrinsics, one row carries
 * meaning, typing and CUDA source. `max` and `min` are NaN if any element is. `argmax` and `argmin` reduce to the lowest index among
 * equal values, so that the result does not depend on the order of combination. Like `topK` they never pick NaN, and are 0 if there is
 * nothing else.
 */
import type { ScalarType } from './dtype.js'

export interface Monoid {
  /** Accepted types of the reduced element. */
  readonly element: readonly ScalarType[]
  /** Type of the result, by element type. */
  readonly result: (element: ScalarType) => ScalarType
  /** Value of an empty reduction. */
  readonly identity: number
  /** Meaning over a whole row, in double precision. */
  readonly evaluate: (length: number, value: (index: number) => number) => number
  /** Combines the reductions of two parts of a row; absent if these are not enough. */
  readonly combine?: (a: number, b: number) => number
  /** Inclusive prefix reductions of a row. */
  readonly scan: (length: number, value: (index: number) => number) => readonly number[]
  /** Name of the functor in `native/device/monoids.cuh`. */
  readonly cuda: string
}

type Reducer = Pick<Monoid, 'evaluate' | 'combine' | 'scan'>

const sequential = (identity: number, combine: (a: number, b: number) => number): Reducer => ({
  combine,
  evaluate: (length, value) => {
    let total = identity
    for (let i = 0; i < length; i++) total = combine(total, value(i))
    return total
  },
  scan: (length, value) => {
    let total = identity
    return Array.from({ length }, (_, i) => {
      total = combine(total, value(i))
      return total
    })
  },
})

/** Index of the first best value. */
const pick = (better: (a: number, b: number) => boolean): Reducer => {
  const picker = (value: (index: number) => number) => {
    let best = 0
    let most = Number.NaN
    return (i: number): number => {
      const candidate = value(i)
      if (better(candidate, most) || (Number.isNaN(most) && !Number.isNaN(candidate))) [best, most] = [i, candidate]
      return best
    }
  }
  return {
    evaluate: (length, value) => {
      const take = picker(value)
      let best = 0
      for (let i = 0; i < length; i++) best = take(i)
      return best
    },
    scan: (length, value) => {
      const take = picker(value)
      return Array.from({ length }, (_, i) => take(i))
    },
  }
}

export const monoids = {
  sum: {
    element: ['f32', 'i32'],
    result: (t) => t,
    identity: 0,
    ...sequential(0, (a, b) => a + b),
    cuda: 'heddle::Sum',
  },
  max: {
    element: ['f32', 'i32'],
    result: (t) => t,
    identity: Number.NEGATIVE_INFINITY,
    ...sequential(Number.NEGATIVE_INFINITY, Math.max),
    cuda: 'heddle::Max',
  },
  min: {
    element: ['f32', 'i32'],
    result: (t) => t,
    identity: Number.POSITIVE_INFINITY,
    ...sequential(Number.POSITIVE_INFINITY, Math.min),
    cuda: 'heddle::Min',
  },
  argmax: {
    element: ['f32', 'i32'],
    result: () => 'i32',
    identity: 0,
    ...pick((a, b) => a > b),
    cuda: 'heddle::ArgMax',
  },
  argmin: {
    element: ['f32', 'i32'],
    result: () => 'i32',
    identity: 0,
    ...pick((a, b) => a < b),
    cuda: 'heddle::ArgMin',
  },
} as const satisfies Record<string, Monoid>

/** Histogram of a row: for each of `bins` integers from 0, the number of values equal to it. Other values are not counted. */
export function countValues(bins: number, length: number, value: (index: number) => number): number[] {
  const counts = Array.from({ length: bins }, () => 0)
  for (let i = 0; i < length; i++) {
    const bin = value(i)
    const before = counts[bin]
    if (before !== undefined) counts[bin] = before + 1
  }
  return counts
}

export type MonoidName = keyof typeof monoids

export const monoid = (name: MonoidName): Monoid => monoids[name]

export const isMonoidName = (name: string): name is MonoidName => Object.hasOwn(monoids, name)
