import { describe, expect, it } from 'vitest'
import { philox, uniform } from '../../src/ir/philox.js'

describe('philox', () => {
  // The known answers that Random123 publishes for philox4x32 with 10 rounds.
  it.each([
    { counter: [0, 0, 0, 0], key: [0, 0], words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] },
    { counter: [-1, -1, -1, -1], key: [-1, -1], words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd] },
    {
      counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      key: [0xa4093822, 0x299f31d0],
      words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    },
  ] as const)('gives the known words of $counter', ({ counter, key, words }) => {
    expect(philox(counter, key)).toEqual(words)
  })
})

describe('uniform', () => {
  it('is the middle of an interval that float32 represents', () => {
    expect(uniform(0, 0, 0)).toBe(((0x6627e8d5 >>> 9) + 0.5) / 2 ** 23)
    const draws = Array.from({ length: 4000 }, (_, i) => uniform(i, -i, i * 77))
    for (const u of draws) expect(Math.fround(u)).toBe(u)
    expect(Math.min(...draws)).toBeGreaterThan(0)
    expect(Math.max(...draws)).toBeLessThan(1)
    expect(Math.fround((2 ** 23 - 0.5) / 2 ** 23)).toBeLessThan(1)
  })

  it('depends on each word of the seed and on the counter', () => {
    const draws = [uniform(1, 2, 3), uniform(4, 2, 3), uniform(1, 4, 3), uniform(1, 2, 4)]
    expect(new Set(draws).size).toBe(4)
  })
})
