import { describe, expect, it } from 'vitest'
import { argmax, ignoredLabel, microF1 } from '../../src/verify/score.js'

describe('argmax', () => {
  it('takes the lowest index among equals', () => {
    expect(argmax([1, 3, 3])).toBe(1)
    expect(argmax([-5])).toBe(0)
  })
})

describe('microF1', () => {
  it('counts every label but 0, and no ignored token', () => {
    // One hit, one claim too many, one label missed.
    expect(microF1([1, 2, 0, 0, 5], [1, 0, 3, 0, ignoredLabel])).toBe(0.5)
    expect(microF1([1, 2], [1, 2])).toBe(1)
    expect(microF1([0, 0], [1, 2])).toBe(0)
  })

  it('counts a wrong label as a claim and as a miss', () => {
    expect(microF1([2, 1], [1, 1])).toBe(0.5)
  })
})
