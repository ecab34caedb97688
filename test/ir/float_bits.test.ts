import { describe, expect, it } from 'vitest'
import { bitsOf, ceil, exp2, floatOfBits, log2, trunc } from '../../src/lang/index.js'

describe('bits of a float', () => {
  it.each([
    [1, 0x3f800000],
    [-2, -0x40000000],
    [-0, -(2 ** 31)],
    [2 ** -149, 1],
    [Number.POSITIVE_INFINITY, 0x7f800000],
    [65_504, 0x477fe000],
  ])('of %d are the words of IEEE 754', (value, bits) => {
    expect(bitsOf(value)).toBe(bits)
    expect(floatOfBits(bits)).toBe(value)
  })
  it('are those of the nearest float32, and of one NaN', () => {
    expect(bitsOf(0.1)).toBe(bitsOf(Math.fround(0.1)))
    expect(bitsOf(0.1)).not.toBe(bitsOf(Math.fround(0.1) + 2 ** -27))
    expect(bitsOf(floatOfBits(0x7fc12345))).toBe(bitsOf(Number.NaN))
  })
})

describe('powers of two', () => {
  it('are exact, and so are their logarithms', () => {
    let [up, down] = [1, 1]
    for (let n = 0; n <= 1022; n++) {
      expect([exp2(n), log2(up), exp2(-n), log2(down)]).toEqual([up, n, down, 0 - n])
      up *= 2
      down /= 2
    }
    expect([exp2(-149), exp2(-1), exp2(127)]).toEqual([floatOfBits(1), 0.5, floatOfBits(0x7f000000)])
  })
})

it('ceil and trunc return floats', () => {
  expect([1.2, -1.2, 3e9].flatMap((x) => [ceil(x), trunc(x)])).toEqual([2, 1, -1, -1, 3e9, 3e9])
})
