/** Comparison of results of planned graphs with unfused ones. */
import { expect } from 'vitest'
import { resummed } from '../../src/verify/tolerance.js'

/** The same operations on the same doubles: nothing may differ, not even in the last bit. */
export const exactly = (actual: readonly number[], expected: readonly number[]): void => expect(actual).toEqual(expected)

/** Sums of doubles in another order. */
export function reordered(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length)
  for (const [i, value] of actual.entries()) {
    const wanted = expected[i] ?? Number.NaN
    const isNear = Object.is(value, wanted) || Math.abs(value - wanted) <= resummed
    if (!isNear) expect(value, `element ${i}`).toBe(wanted)
  }
}
