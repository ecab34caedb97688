/** Change points of seeded series: found where a step was planted, and not where there is only noise. */
import { describe, expect, it } from 'vitest'
import { bestSplit, changePoints } from '../../../src/bench/history/change_points.js'
import { normal, random } from '../../../src/verify/random.js'

/** Samples of runs with the given medians: log-normal noise between runs, and less of it within one. */
function drawn(name: string, medians: readonly number[], noise: number): number[][] {
  const next = random(name)
  return medians.map((median) => {
    const own = median * Math.exp(noise * normal(next))
    return Array.from({ length: 12 }, () => own * Math.exp(0.3 * noise * normal(next)))
  })
}

const flat = (runs: number, median = 1): number[] => Array.from({ length: runs }, () => median)
const limit = { limit: 1.05 }
const placesOf = (runs: readonly (readonly number[])[]) => changePoints(runs, limit).map(({ at, by }) => [at, by])

describe('a step', () => {
  it('is found at its run by permutations, also one within the spread of single runs', () => {
    const runs = drawn('step', [...flat(20), ...flat(20, 1.1)], 0.03)
    const [change, ...others] = changePoints(runs, limit)
    expect(others).toEqual([])
    expect(change).toMatchObject({ at: 20, by: 'permutations' })
    expect(change?.ratio).toBeGreaterThan(1.06)
  })

  it('is found after a few runs, once a later run confirms it', () => {
    const noise = 0.005
    expect(placesOf(drawn('few', [...flat(3), ...flat(2, 1.2)], noise))).toEqual([[3, 'runs']])
    expect(placesOf(drawn('few', [1, 1, 0.7, 0.7, 0.7], noise))).toEqual([[2, 'runs']])
  })

  it('is reported of the newest run, also of two runs', () => {
    expect(placesOf(drawn('two', [1, 1.3], 0.005))).toEqual([[1, 'run']])
    expect(placesOf(drawn('new', [...flat(15), 1.3], 0.01))).toEqual([[15, 'run']])
  })

  it('and another one, back, are two', () => {
    expect(placesOf(drawn('there and back', [...flat(12), ...flat(12, 1.3), ...flat(12)], 0.01)).map(([at]) => at)).toEqual([
      12, 24,
    ])
  })

  it('of a price is exact', () => {
    const prices = [1, 1, 1.04, 1.04, 1.1, 1.1].map((price) => [price])
    expect(changePoints(prices, { ...limit, exact: true })).toMatchObject([{ at: 4, by: 'price', before: 1.02, now: 1.1 }])
    expect(changePoints(prices, { limit: 1.2, exact: true })).toEqual([])
  })
})

describe('no change is found', () => {
  it('within the limit, however steady', () => {
    expect(placesOf(drawn('small', [...flat(20), ...flat(20, 1.03)], 0.001))).toEqual([])
  })

  it('for one slow run between others', () => {
    expect(placesOf(drawn('outlier', [...flat(8), 1.4, ...flat(8)], 0.01))).toEqual([])
  })

  it('in noise: of 200 series of 30 runs at most two, where a step of four times the noise is found in 190', () => {
    const noise = 0.02
    const series = Array.from({ length: 200 }, (_, i) => i)
    const alarms = series.filter((i) => changePoints(drawn(`noise ${i}`, flat(30), noise), limit).length > 0)
    expect(alarms.length).toBeLessThanOrEqual(2)
    const medians = [...flat(15), ...flat(15, 1 + 4 * noise)]
    const found = series.filter((i) =>
      changePoints(drawn(`noise ${i}`, medians, noise), limit).some(({ at }) => Math.abs(at - 15) <= 2),
    )
    expect(found.length).toBeGreaterThanOrEqual(190)
  })

  it('in an empty series, or one run', () => {
    expect([changePoints([], limit), changePoints([[1, 2]], limit)]).toEqual([[], []])
  })
})

it('the statistic is the energy distance of two sides: 0 1 2 and 10 11 12', () => {
  // Between: 9 pairs, 90 in sum; within each side: 3 pairs, 4 in sum. 3 x 3 / 6 x (2 x 10 - 4 / 3 - 4 / 3).
  const { at, statistic } = bestSplit([0, 1, 2, 10, 11, 12])
  expect(at).toBe(3)
  expect(statistic).toBeCloseTo(1.5 * (20 - 8 / 3), 12)
})
