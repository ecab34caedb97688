/** Covers of least cost, compared with every cover of random graphs. */
import { expect, it } from 'vitest'
import { bestCovers } from '../../src/search/cover.js'
import { allCovers, randomTask } from './random_tasks.js'

const tasks = Array.from({ length: 300 }, (_, at) => randomTask(`cover ${at}`))
const digits = 9

it('the cheapest covers of 300 random graphs are those of an enumeration', () => {
  let sizes = 0
  for (const task of tasks) {
    const expected = allCovers(task).slice(0, 5)
    const found = bestCovers(task, 5)
    expect(found.map(({ cost }) => cost.toFixed(digits))).toEqual(expected.map(({ cost }) => cost.toFixed(digits)))
    expect(new Set(found.map(({ chosen }) => chosen.join())).size).toBe(found.length)
    sizes = Math.max(sizes, task.reads.length)
  }
  expect(sizes).toBe(9)
})

it('the cases contain covers that cannot run, which a search without order would choose', () => {
  const free = tasks.filter((task) => {
    const unordered = { ...task, reads: task.reads.map(() => []) }
    return (allCovers(unordered)[0]?.cost ?? 0) < (bestCovers(task, 1)[0]?.cost ?? 0)
  })
  expect(free.length).toBeGreaterThan(5)
})

it('two groups that wait for each other are no cover', () => {
  // 0 -> 1 and 2 -> 3: {0, 3} and {1, 2} each run alone, but not both.
  const reads = [[], [0], [], [2]]
  const alone = [0, 1, 2, 3].map((node) => ({ members: [node], cost: 3 }))
  const choices = [...alone, { members: [0, 3], cost: 1 }, { members: [1, 2], cost: 1 }]
  const [best] = bestCovers({ reads, choices }, 1)
  expect(best).toEqual({ chosen: [0, 3, 5], cost: 7 })
})

it('a node without a group has no cover', () => {
  expect(bestCovers({ reads: [[], [0]], choices: [{ members: [0], cost: 1 }] }, 3)).toEqual([])
})

it('a graph of many branches is followed along its cheapest states only', () => {
  // 30 branches of two nodes: 3 ** 30 sets of nodes.
  const reads = Array.from({ length: 60 }, (_, node) => (node % 2 === 1 ? [node - 1] : []))
  const alone = reads.map((_, node) => ({ members: [node], cost: 2 }))
  const pairs = reads.flatMap((_, node) => (node % 2 === 1 ? [{ members: [node - 1, node], cost: 3 }] : []))
  const [best] = bestCovers({ reads, choices: [...alone, ...pairs] }, 1, 3000)
  expect(best?.cost).toBe(90)
})
