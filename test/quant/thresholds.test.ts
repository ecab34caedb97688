/** Thresholds of small histograms written out by hand, and properties of all histograms. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { binScale, type Histogram, merge } from '../../src/quant/histogram.js'
import { type Method, methodNames, threshold } from '../../src/quant/thresholds.js'

const of = (amax: number, ...counts: number[]): Histogram => ({ amax, counts: Float64Array.from(counts) })
const percentile = (share: number): Method => ({ name: 'percentile', percentile: share })
const methods: readonly Method[] = methodNames.map((name) => (name === 'percentile' ? percentile(99.99) : { name }))

/** Counts over `bins` bins, filled by a function of the bin. */
const filled = (amax: number, bins: number, count: (bin: number) => number): Histogram =>
  of(amax, ...Array.from({ length: bins }, (_, bin) => count(bin)))

describe('max', () => {
  it('is the largest magnitude', () => expect(threshold(of(3, 5, 0, 1), { name: 'max' })).toBe(3))
})

describe('percentile', () => {
  const histogram = of(8, 4, 3, 2, 1)
  it.each([
    [40, 2],
    [40.1, 4],
    [70, 4],
    [90, 6],
    [90.1, 8],
    [100, 8],
  ])('%d of ten magnitudes in bins 2 wide is the edge %d', (share, edge) =>
    expect(threshold(histogram, percentile(share))).toBe(edge),
  )
  it('never falls when the share rises', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 50 }), fc.nat(100), fc.nat(100), (counts, a, b) => {
        const at = (share: number) => threshold(of(1, ...counts, 1), percentile(share))
        return at(Math.min(a, b)) <= at(Math.max(a, b))
      }),
    ))
})

/** Expected squared error of quantising bin centres with a threshold, by definition. */
function squaredError({ amax, counts }: Histogram, limit: number): number {
  const step = limit / 127
  return counts.reduce((total, count, bin) => {
    const x = ((bin + 0.5) * amax) / counts.length
    return total + count * (x - Math.max(-127, Math.min(127, Math.round(x / step))) * step) ** 2
  }, 0)
}

describe('mse', () => {
  it('leaves out an outlier that costs the others more than it gains', () => {
    const outlier = filled(16, 2048, (bin) => (bin < 256 ? 1000 : bin === 2047 ? 1 : 0))
    expect(threshold(outlier, { name: 'mse' })).toBeLessThan(8)
    const many = filled(16, 2048, (bin) => (bin < 256 ? 1000 : bin === 2047 ? 100_000 : 0))
    expect(threshold(many, { name: 'mse' })).toBeGreaterThan(15.9)
  })
  it('finds no worse threshold than any other edge', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(20), { minLength: 128, maxLength: 300 }), (counts) => {
        const histogram = of(5, ...counts, 1)
        const chosen = squaredError(histogram, threshold(histogram, { name: 'mse' }))
        const others = Array.from({ length: counts.length + 1 - 127 }, (_, i) =>
          squaredError(histogram, (5 * (128 + i)) / (counts.length + 1)),
        )
        return others.every((error) => chosen <= error * (1 + 1e-9))
      }),
      { numRuns: 20 },
    ))
  it('distinguishes a worse threshold from the best', () => {
    const histogram = filled(16, 2048, (bin) => (bin < 256 ? 1000 : bin === 2047 ? 1 : 0))
    expect(squaredError(histogram, 16)).toBeGreaterThan(squaredError(histogram, threshold(histogram, { name: 'mse' })))
  })
})

describe('entropy', () => {
  it('keeps a histogram that quantises without loss: two bins per level, all equally full', () =>
    expect(
      threshold(
        filled(2, 256, () => 7),
        { name: 'entropy' },
      ),
    ).toBe(2))
  it('saturates a thin tail', () => {
    const tail = filled(16, 2048, (bin) => (bin < 300 ? 10_000 + ((bin * 7919) % 13) * 300 : 1))
    const chosen = threshold(tail, { name: 'entropy' })
    expect(chosen).toBeGreaterThanOrEqual(1)
    expect(chosen).toBeLessThan(8)
  })
  it('does not mind how many values are zero', () => {
    const counts = (zeros: number) => filled(4, 1024, (bin) => (bin === 0 ? zeros : Math.ceil(5000 * Math.exp(-bin / 80))))
    const chosen = threshold(counts(5000), { name: 'entropy' })
    expect(threshold(counts(5_000_000), { name: 'entropy' })).toBe(chosen)
    expect(chosen).toBeLessThan(4)
  })
})

describe.each(methods)('$name', (method) => {
  const counts = fc.array(fc.nat(1000), { minLength: 1, maxLength: 400 })
  it('answers a number in (0, amax]', () =>
    fc.assert(
      fc.property(counts, fc.double({ min: 1e-20, max: 1e20, noNaN: true }), (found, amax) => {
        const chosen = threshold(of(amax, ...found, 1), method)
        return chosen > 0 && chosen <= amax
      }),
      { numRuns: 50 },
    ))
  it('follows the unit of the magnitudes, and not how many there are', () =>
    fc.assert(
      fc.property(counts, (found) => {
        const chosen = threshold(of(1, ...found, 1), method)
        const doubled = threshold(of(2, ...found, 1), method)
        const more = threshold(of(1, ...found.map((count) => 4 * count), 4), method)
        return doubled === 2 * chosen && more === chosen
      }),
      { numRuns: 50 },
    ))
  it.each([0, 1e-40])('is 0 for magnitudes of %d at most', (amax) => expect(threshold(of(amax, 9, 0, 0), method)).toBe(0))
  it('serves a histogram of one bin', () => expect(threshold(of(3, 9), method)).toBe(3))
})

describe('histograms', () => {
  it('merge by adding the counts of bins', () => expect(merge(of(1, 1, 2), of(1, 0, 5))).toEqual(of(1, 1, 7)))
  it.each([
    ['span', of(2, 1, 2)],
    ['number of bins', of(1, 1, 2, 3)],
  ])('do not merge with another %s', (_, other) => expect(() => merge(of(1, 1, 2), other)).toThrow(RangeError))
  it('put the largest magnitude in the last bin, and have a finite scale for any', () => {
    expect(binScale(4, 2048) * 4).toBe(2048)
    expect([0, 1e-40, 3e38].map((amax) => binScale(amax, 2048)).every(Number.isFinite)).toBe(true)
    expect(binScale(0, 2048)).toBe(0)
  })
})
