import { describe, expect, it } from 'vitest'
import { compare, nearer, relativeL2 } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'

const bound = tolerance({ dtype: 'f32', class: 'elementwise' })
const exact = tolerance({ dtype: 'f32', class: 'exact' })
const allowedAt = (value: number) => bound.absolute + bound.relative * Math.abs(value)

describe('compare', () => {
  it('accepts equal values and an error just inside the bound', () => {
    expect(compare([1, 2], [1, 2], exact)).toMatchObject({ passed: true, failures: 0, worst: undefined })
    expect(compare([1 + 0.99 * allowedAt(1)], [1], bound).passed).toBe(true)
  })

  it('refuses an error just outside the bound and names the element', () => {
    const result = compare([1, 3 + 1.01 * allowedAt(3), 5], [1, 3, 5], bound)
    expect(result).toMatchObject({ passed: false, failures: 1, worst: { index: 1, expected: 3 } })
    expect(result.summary).toMatch(/^1 of 3 elements differ; worst element 1 is 3\.\d+, expected 3, error/)
  })

  it('treats NaN as equal to NaN only if the caller allows it', () => {
    const found = [Number.NaN, 1, Number.NaN]
    expect(compare(found, [Number.NaN, 1, Number.NaN], bound, 'equals').passed).toBe(true)
    expect(compare(found, [Number.NaN, Number.NaN, 2], bound, 'equals').failures).toBe(2)
    expect(compare(found, [Number.NaN, 1, Number.NaN], bound).failures).toBe(2)
  })

  it('takes the nearer of two values that an element may have', () => {
    expect([...nearer([1, 2.2, 5, Number.NaN], [1, 2, 3, 4], [0, 2.2, 6, 7])]).toEqual([1, 2.2, 6, 4])
  })

  it('checks each element against a bound of its own', () => {
    const boundAt = (index: number) => ({ absolute: index, relative: 0 })
    expect(compare([1, 3, 5], [1, 2, 3], boundAt).passed).toBe(true)
    expect(compare([1, 3, 5.1], [1, 2, 3], boundAt)).toMatchObject({ failures: 1, worst: { index: 2, allowed: 2 } })
  })

  it.each([
    ['a number', Number.NaN, 1],
    ['NaN', Number.NaN, Number.NaN],
    ['infinity', Number.NaN, Number.POSITIVE_INFINITY],
  ])('never accepts NaN where %s is expected', (_, actual, expected) => {
    expect(compare([actual], [expected], { absolute: 1e30, relative: 1e30 }).passed).toBe(false)
  })

  it('never accepts a number where NaN is expected', () => {
    expect(compare([0], [Number.NaN], { absolute: 1e30, relative: 1e30 }).passed).toBe(false)
  })

  it('takes an infinity for the same infinity only', () => {
    const infinity = Number.POSITIVE_INFINITY
    expect(compare([infinity, -infinity], [infinity, -infinity], exact).passed).toBe(true)
    expect(compare([infinity], [-infinity], bound).passed).toBe(false)
    expect(compare([3e38], [infinity], bound).passed).toBe(false)
    expect(compare([infinity], [3e38], { absolute: 1e30, relative: 1e30 }).passed).toBe(false)
  })

  it('refuses missing and additional elements', () => {
    expect(compare([1, 2], [1, 2, 3], bound)).toMatchObject({ passed: false, summary: '2 elements instead of 3' })
    expect(compare([1, 2, 3], [1, 2], bound).passed).toBe(false)
  })

  it('ranks NaN above any finite error', () => {
    expect(compare([100, Number.NaN, 200], [1, 1, 1], bound).worst?.index).toBe(1)
  })
})

describe('relativeL2', () => {
  it('is the norm of the error over the norm of the expected values', () => {
    expect(relativeL2([3, 4.5], [3, 4])).toBeCloseTo(0.1, 12)
    expect(relativeL2([0], [0])).toBe(0)
  })

  it('is NaN when a value is NaN or missing', () => {
    expect(relativeL2([Number.NaN], [1])).toBeNaN()
    expect(relativeL2([1], [1, 2])).toBeNaN()
  })
})
