import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arenaAlignment, findClash, type Life, planMemory } from '../../src/runtime/planner.js'

const lives = fc.array(
  fc
    .record({ bytes: fc.nat(5000), first: fc.nat(30), span: fc.nat(10) })
    .map(({ bytes, first, span }): Life => ({ bytes, first, last: first + span })),
  { maxLength: 40 },
)

describe('planMemory', () => {
  it('never lets two buffers that are alive together share memory', () => {
    fc.assert(
      fc.property(lives, (given) => {
        const plan = planMemory(given)
        expect(findClash(given, plan.offsets)).toBeUndefined()
        expect(plan.offsets.every((offset) => offset % arenaAlignment === 0)).toBe(true)
        expect(given.every(({ bytes }, i) => (plan.offsets[i] ?? 0) + bytes <= plan.bytes)).toBe(true)
        expect(plan.bytes).toBeGreaterThanOrEqual(plan.lowerBound)
      }),
    )
  })

  it('has a checker that notices a buffer moved onto a living neighbour', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 1, max: 5000 }), fc.nat(20), (a, b, shift) => {
        const given = [
          { bytes: a, first: 0, last: 3 },
          { bytes: b, first: 3, last: 5 },
        ]
        const { offsets } = planMemory(given)
        expect(findClash(given, offsets)).toBeUndefined()
        const onto = (offsets[0] ?? 0) + Math.min(shift, a - 1)
        expect(findClash(given, [offsets[0] ?? 0, onto])).toEqual([0, 1])
      }),
    )
  })

  it('shares memory between lives that do not meet', () => {
    const chain = Array.from({ length: 10 }, (_, i) => ({ bytes: 1024, first: i, last: i + 1 }))
    const plan = planMemory(chain)
    expect(plan.bytes).toBe(2048)
    expect(plan.bytes).toBe(plan.lowerBound)
  })

  it('puts a buffer into the tightest gap', () => {
    const plan = planMemory([
      { bytes: 4096, first: 0, last: 0 },
      { bytes: 2048, first: 0, last: 9 },
      { bytes: 1024, first: 0, last: 0 },
      { bytes: 512, first: 0, last: 9 },
      { bytes: 256, first: 5, last: 9 },
      { bytes: 1024, first: 5, last: 9 },
    ])
    expect(plan.offsets).toEqual([0, 4096, 6144, 7168, 6144, 0])
  })

  it('allocates nothing for buffers of zero bytes', () => {
    expect(planMemory([{ bytes: 0, first: 0, last: 9 }])).toEqual({ offsets: [0], bytes: 0, lowerBound: 0 })
    expect(planMemory([])).toEqual({ offsets: [], bytes: 0, lowerBound: 0 })
  })
})
