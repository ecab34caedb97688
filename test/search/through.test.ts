/** The cheapest cover through each group, compared with every cover of random graphs. */
import { expect, it } from 'vitest'
import { throughCosts } from '../../src/search/through.js'
import { allCovers, randomTask } from './random_tasks.js'

const digits = 9

it('the cheapest covers through each group of 300 random graphs are those of an enumeration', () => {
  let without = 0
  for (let at = 0; at < 300; at++) {
    const task = randomTask(`through ${at}`)
    const all = allCovers(task)
    const expected = task.choices.map((_, choice) =>
      Math.min(...all.flatMap(({ chosen, cost }) => (chosen.includes(choice) ? [cost] : []))),
    )
    const found = throughCosts(task)
    expect(found.map((cost) => cost.toFixed(digits))).toEqual(expected.map((cost) => cost.toFixed(digits)))
    without += found.filter((cost) => cost === Number.POSITIVE_INFINITY).length
  }
  expect(without).toBe(0)
})

it('no cover leads through any group if a node has none, or through two groups that wait for each other', () => {
  const never = Number.POSITIVE_INFINITY
  const alone = [0, 1].map((node) => ({ members: [node], cost: 3 }))
  expect(throughCosts({ reads: [[], [0], []], choices: alone })).toEqual([never, never])
  const crossed = [
    [0, 3],
    [1, 2],
  ].map((members) => ({ members, cost: 1 }))
  expect(throughCosts({ reads: [[], [0], [], [2]], choices: crossed })).toEqual([never, never])
})
