/**
 * The associative combinations a row reduction or scan can use, and the histogram of a row. Like the intrinsics, one row carries meaning, typing and CUDA text.
 * `max` and `min` are NaN where any element is. `argmax` and `argmin` reduce to the lowest index among equal values, so their result
 * does not depend on the order of combination; like `topK` they never pick NaN, and are 0 where there is nothing else.
 */
import type { ScalarType } from './dtype.js'

export interface Monoid {
  /** Types of reduced element it accepts. */
  readonly element: readonly ScalarType[]
  /** Type of the result for an element type. */
  readonly result: (element: ScalarType) => ScalarType
  /** The value of an empty reduction. */
  readonly identity: number
  /** Meaning over a whole row, in double precision. */
  readonly evaluate: (length: number, value: (index: number) => number) => number
  /** What two parts of a row combine to, where their reductions are all it takes. */
  readonly combine?: (a: number, b: number) => number
  /** For every element of a row, the reduction of the elements up to it, itself included. */
  readonly scan: (length: number, value: (index: number) => number) => readonly number[]
  /** Name of the functor in `native/device/monoids.cuh`. */
  readonly cuda: string
}

type Meaning = Pick<Monoid, 'evaluate' | 'combine' | 'scan'>

const fold = (identity: number, combine: (a: number, b: number) => number): Meaning => ({
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

/** The index of the first value that no other is better than. */
const pick = (better: (a: number, b: number) => boolean): Meaning => {
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
    ...fold(0, (a, b) => a + b),
    cuda: 'heddle::Sum',
  },
  max: {
    element: ['f32', 'i32'],
    result: (t) => t,
    identity: Number.NEGATIVE_INFINITY,
    ...fold(Number.NEGATIVE_INFINITY, Math.max),
    cuda: 'heddle::Max',
  },
  min: {
    element: ['f32', 'i32'],
    result: (t) => t,
    identity: Number.POSITIVE_INFINITY,
    ...fold(Number.POSITIVE_INFINITY, Math.min),
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

/** What a histogram of a row is: for each of `bins` integers from 0, how many values are that integer. Other values count nowhere. */
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
