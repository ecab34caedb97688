/** Searches over several shapes: what is measured of a kernel, and the plan that is the best over all of them. */
import { expect, it } from 'vitest'
import { distinct, idOf, type Problem } from '../../src/search/covers.js'
import { type Clock, measuredSearch } from '../../src/search/measured.js'
import type { Launch } from '../../src/search/price.js'

const shapes = ['few', 'many']

/** Times of groups at two shapes, by their members; predictions are the same. */
function problemOf(groups: readonly { readonly members: readonly number[]; readonly times: readonly number[] }[]): Problem {
  return {
    shapes,
    variants: [
      {
        reads: [[], [0]],
        groups: groups.map(({ members, times }, at) => ({
          members,
          launches: times.map(
            (model, shape): Launch => ({ id: `c${at} ${shape}`, content: `c${at}`, kind: 'row', sizes: [shape + 1], model }),
          ),
        })),
      },
    ],
  }
}

/** A clock that finds what is predicted. */
function clockOf(problem: Problem): Clock & { readonly timed: string[] } {
  const timed: string[] = []
  const all = distinct(problem)
  return {
    timed,
    isOver: () => false,
    async time(launches, seen) {
      for (const launch of launches) {
        timed.push(launch.id)
        seen(launch, { seconds: all.get(launch.id)?.model ?? 0 })
      }
      return new Set()
    },
  }
}

const alone = [
  { members: [0], times: [2, 20] },
  { members: [1], times: [2, 20] },
]

it('the best plan over all shapes is found, though it is the best of none', async () => {
  const problem = problemOf([
    ...alone,
    { members: [0, 1], times: [1, 35] },
    { members: [0, 1], times: [3, 10] },
    { members: [0, 1], times: [1.3, 12] },
  ])
  const { covers, joint } = await measuredSearch(problem, clockOf(problem), { covers: 1 })
  expect(covers.map(([best]) => best?.chosen)).toEqual([[2], [3]])
  expect(joint[0]?.chosen).toEqual([4])
  expect(joint[0]?.cost).toBeCloseTo(1.3 + 1.2, 9)
})

it('a kernel is measured at every shape at which a plan with it is near the best, and at no other', async () => {
  const problem = problemOf([
    ...alone,
    { members: [0, 1], times: [1, 11] },
    { members: [0, 1], times: [1.1, 10] },
    { members: [0, 1], times: [1.05, 90] },
  ])
  const clock = clockOf(problem)
  await measuredSearch(problem, clock, { covers: 2, idle: () => 16 })
  expect(clock.timed).toEqual(expect.arrayContaining(['c2 0', 'c2 1', 'c3 0', 'c3 1']))
  expect(clock.timed).not.toContain('c4 1')
})

it('launches of a plan that is given are measured, however far from the best they are', async () => {
  const problem = problemOf([...alone, { members: [0, 1], times: [0.01, 0.1] }])
  const clock = clockOf(problem)
  const given = problem.variants[0]?.groups.slice(0, 2).flatMap(({ launches }) => launches) ?? []
  const { covers } = await measuredSearch(problem, clock, { given })
  expect(clock.timed).toEqual(expect.arrayContaining(given.map(({ id }) => id)))
  expect(covers.map(([best]) => best && idOf(best))).toEqual(['0:2', '0:2'])
})
