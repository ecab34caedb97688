/** How results of planned graphs are held against unfused ones. */
import { expect } from 'vitest'

/** The same operations on the same doubles: nothing may differ, not even in the last bit. */
export const exactly = (actual: readonly number[], expected: readonly number[]): void => expect(actual).toEqual(expected)

/** Sums of doubles in another order: equal to 12 digits. */
export function reordered(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length)
  for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(expected[i] ?? Number.NaN, 11)
}
