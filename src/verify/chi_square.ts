/** Pearson's chi-square test of draws against the probabilities they should have. */
import { drawQuantile } from './tolerance.js'

/** Cells that expect fewer draws are merged: with them, the statistic is not chi-square distributed. */
const fewestExpected = 5

export interface ChiSquare {
  readonly statistic: number
  readonly degrees: number
  /** The value that the statistic of correct draws exceeds once in a thousand times. */
  readonly critical: number
  readonly passed: boolean
}

/**
 * The value a chi-square variable of `degrees` degrees exceeds with the probability of `drawQuantile`, as its cube root is nearly
 * normal (Wilson and Hilferty, 1931): within 2 % from 3 degrees on, 1 % from 10 on.
 */
export function criticalValue(degrees: number): number {
  if (degrees === 0) return 0
  const variance = 2 / (9 * degrees)
  return degrees * (1 - variance + drawQuantile * Math.sqrt(variance)) ** 3
}

/** Compares the count of each outcome with its probability. An outcome of probability 0 fails the test if it is drawn at all. */
export function chiSquare(counts: readonly number[], probabilities: readonly number[]): ChiSquare {
  const draws = counts.reduce((sum, count) => sum + count, 0)
  const cells: { count: number; expected: number }[] = []
  const rare = { count: 0, expected: 0 }
  let impossible = 0
  for (const [i, count] of counts.entries()) {
    const expected = (probabilities[i] ?? 0) * draws
    if (expected === 0) impossible += count
    else if (expected >= fewestExpected) cells.push({ count, expected })
    else {
      rare.count += count
      rare.expected += expected
    }
  }
  if (rare.expected > 0) cells.push(rare)
  const statistic =
    impossible > 0
      ? Number.POSITIVE_INFINITY
      : cells.reduce((sum, { count, expected }) => sum + (count - expected) ** 2 / expected, 0)
  const degrees = cells.length - 1
  const critical = criticalValue(degrees)
  return { statistic, degrees, critical, passed: statistic <= critical }
}
