import { describe, expect, it } from 'vitest'
import { chiSquare, criticalValue } from '../../src/verify/chi_square.js'

describe('the chi-square test', () => {
  it('knows the values that one in a thousand exceeds', () => {
    // Tabled quantiles at 0.999.
    const table = [
      [3, 16.266],
      [10, 29.588],
      [49, 85.351],
      [100, 149.449],
    ] as const
    for (const [degrees, value] of table)
      expect(Math.abs(criticalValue(degrees) / value - 1), `${degrees}`).toBeLessThan(degrees < 10 ? 0.02 : 0.01)
  })

  it('adds squared distances over the expected values', () => {
    const { statistic, degrees, passed } = chiSquare([30, 50, 20], [0.25, 0.5, 0.25])
    expect([statistic, degrees, passed]).toEqual([1 + 0 + 1, 2, true])
    expect(chiSquare([60, 30, 10], [0.25, 0.5, 0.25]).passed).toBe(false)
  })

  it('counts rare outcomes together', () => {
    const { degrees, statistic } = chiSquare([90, 6, 2, 2], [0.9, 0.04, 0.03, 0.03])
    expect([degrees, statistic]).toEqual([1, 0])
  })

  it('accepts the one outcome there is', () => {
    expect(chiSquare([7, 0], [1, 0])).toMatchObject({ statistic: 0, degrees: 0, passed: true })
  })

  it('accepts no draw of probability zero', () => {
    expect(chiSquare([99_999, 1], [1, 0])).toMatchObject({ statistic: Number.POSITIVE_INFINITY, passed: false })
  })
})
