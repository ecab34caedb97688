/** Searches over groups that were timed on a GPU: each ends with a plan that takes no longer than the one by hand, of which it knows nothing. */
import { expect, it } from 'vitest'
import { launchesOf } from '../../src/search/covers.js'
import { measuredSearch } from '../../src/search/measured.js'
import { recorded, recordedClock } from './recorded.js'

const names = ['decoder_layer_pre_relu']

it.each(names)('a search of %s ends with a plan that is at least as good as the one by hand', async (name) => {
  const all = recorded(name)
  const { problem, hand, seconds } = all
  const { covers, joint, measured, launches } = await measuredSearch(problem, recordedClock(all))
  const byHand = problem.shapes.map((_, shape) =>
    launchesOf(problem, shape, hand).reduce((sum, { id }) => sum + (seconds.get(id) ?? Number.NaN), 0),
  )
  expect(byHand.every((time) => time > 0)).toBe(true)
  const least = covers.map(([best]) => best?.cost ?? Number.NaN)
  for (const [shape, time] of byHand.entries()) expect(least[shape]).toBeLessThanOrEqual(time * (1 + 1e-9))
  const over = byHand.reduce((sum, time, shape) => sum + time / (least[shape] ?? Number.NaN), 0)
  expect(joint[0]?.cost).toBeLessThanOrEqual(over * (1 + 1e-9))
  expect(measured).toBeLessThan(launches)
})

it('a search that measures nothing ends with a plan by price that takes longer than the one by hand', async () => {
  const slower = await Promise.all(
    names.map(async (name) => {
      const all = recorded(name)
      const { problem, seconds, hand } = all
      const { joint } = await measuredSearch(problem, { ...recordedClock(all), isOver: () => true })
      const over = (cover: typeof hand): readonly number[] =>
        problem.shapes.map((_, shape) =>
          launchesOf(problem, shape, cover).reduce((sum, { id }) => sum + (seconds.get(id) ?? Number.POSITIVE_INFINITY), 0),
        )
      const [byPrice, byHand] = [over(joint[0] ?? hand), over(hand)]
      return byPrice.some((time, shape) => time > (byHand[shape] ?? 0) * 1.001)
    }),
  )
  expect(slower).toContain(true)
})
