import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { literalText } from '../../src/emit/print/literal.js'

const f32 = (value: number): string => literalText({ kind: 'const', type: 'f32', value })
const i32 = (value: number): string => literalText({ kind: 'const', type: 'i32', value })

describe('literals', () => {
  it.each<[number, string]>([
    [0, '0.0f'],
    [-0, '(-0.0f)'],
    [0.5, '0.5f'],
    [0.1, '0.1f'],
    [-1e30, '(-1e+30f)'],
    [1e-12, '1e-12f'],
    [2 ** -149, '1.40129846e-45f'],
    [16777217, '16777216.0f'],
    [Number.NEGATIVE_INFINITY, '(-INFINITY)'],
    [1e39, 'INFINITY'],
    [Number.NaN, 'NAN'],
  ])('float %d', (value, text) => expect(f32(value)).toBe(text))

  it.each<[number, string]>([
    [7, '7'],
    [-7, '(-7)'],
    [-2147483648, '(-2147483647 - 1)'],
  ])('integer %d', (value, text) => expect(i32(value)).toBe(text))

  it('is a float with unambiguous rounding', () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const read = Number(f32(value).replaceAll(/[()f]/g, ''))
        expect(Math.fround(read)).toBe(value)
        // The nearest boundary between two floats is at least 2^-25 of the number away; subnormals are further apart.
        if (Math.abs(value) >= 2 ** -126) expect(Math.abs(read - value)).toBeLessThan(Math.abs(value) * 2 ** -25)
      }),
      { seed: 3, numRuns: 2000 },
    )
  })
})
