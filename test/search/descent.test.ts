/** Descents over whole plans whose times are no sums: a group takes longer or shorter beside others, which only a whole plan shows. */
import { expect, it } from 'vitest'
import { bestCovers, type CoverTask } from '../../src/search/cover.js'
import { coversOf, type Found, type Problem } from '../../src/search/covers.js'
import { descend, geometricMean, type WholeClock } from '../../src/search/descent.js'
import type { Launch } from '../../src/search/price.js'
import { random, uniform } from '../../src/verify/random.js'
import { allCovers, randomTask } from './random_tasks.js'

const shapes = ['few', 'many']

/** Each group at two shapes: at the second it takes another share of ten times as long. */
function problemOf({ reads, choices }: CoverTask, seed: string): Problem {
  const groups = choices.map(({ members, cost }, at) => ({
    members,
    launches: shapes.map((name, shape): Launch => {
      const model = shape === 0 ? cost : cost * 10 * uniform(random(`${seed} many ${at}`), 0.8, 1.2)
      return { id: `c${at} ${name}`, content: `c${at}`, kind: 'row', sizes: [8], model }
    }),
  }))
  return { shapes, variants: [{ reads, groups }] }
}

/** Seconds of a whole plan: the sum of its groups, each longer by up to three fifths beside some others. */
function secondsOf({ variants }: Problem, seed: string, { chosen }: Pick<Found, 'chosen'>): readonly number[] {
  return shapes.map((_, shape) =>
    chosen.reduce((sum, at) => {
      const beside = chosen.filter((other) => other !== at)
      const share = Math.max(0, ...beside.map((other) => uniform(random(`${seed} ${at} ${other}`), -0.6, 0.6)))
      return sum + (variants[0]?.groups[at]?.launches[shape]?.model ?? 0) * (1 + share)
    }, 0),
  )
}

const sum = (launches: readonly Launch[]): number => launches.reduce((total, { model }, shape) => total + model / 10 ** shape, 0)

/** A clock whose device is slower by a third each time it is asked. */
function drifting(problem: Problem, seed: string, most = Number.POSITIVE_INFINITY): WholeClock & { readonly asked: number[] } {
  const asked: number[] = []
  return {
    asked,
    isOver: () => asked.length >= most,
    async time(covers) {
      asked.push(covers.length)
      return covers.map((cover) => secondsOf(problem, seed, cover).map((each) => each * 1.33 ** asked.length))
    },
  }
}

/** Times of covers over both shapes in relation to the best one by enumeration. */
async function regrets(at: number) {
  const task = randomTask(`descent ${at}`)
  const seed = `${at}`
  const problem = problemOf(task, seed)
  const [start] = coversOf(problem, 1, sum)
  if (start === undefined) throw new Error('no cover')
  const { wholes, isComplete } = await descend(problem, [start], [{ cost: sum }], drifting(problem, seed), { within: 2 })
  const best = wholes[0]?.cover ?? start
  const scoreOf = (cover: Pick<Found, 'chosen'>): number => geometricMean(secondsOf(problem, seed, cover))
  const least = Math.min(...allCovers(task).map(scoreOf))
  return { before: scoreOf(start) / least, after: scoreOf(best) / least, isComplete, timed: wholes.length }
}

it('a descent from the best sum ends near the best plan of 60 random graphs, from which the sum is far', async () => {
  const all = await Promise.all(Array.from({ length: 60 }, (_, at) => regrets(at)))
  expect(all.every(({ isComplete }) => isComplete)).toBe(true)
  expect(all.every(({ before, after }) => after <= before)).toBe(true)
  expect(all.filter(({ before }) => before > 1.02).length).toBeGreaterThan(15)
  expect(all.filter(({ after }) => after > 1.02).length).toBeLessThan(6)
})

it('times of a known plan are not taken again, and the same plan is found', async () => {
  const task = randomTask('descent known')
  const problem = problemOf(task, 'known')
  const start = coversOf(problem, 1, sum)
  const first = await descend(problem, start, [{ cost: sum }], drifting(problem, 'known'))
  const clock = drifting(problem, 'known', 0)
  const known = new Map(first.wholes.map(({ cover, seconds }) => [cover.chosen.join(), seconds]))
  const again = await descend(
    problem,
    start,
    [{ cost: sum }],
    { ...clock, isOver: () => false },
    { known: ({ chosen }) => known.get(chosen.join()) },
  )
  expect(clock.asked).toEqual([])
  expect(again.wholes).toEqual(first.wholes)
})

it('a plan that cannot be run is never the best, and time that is over ends the descent', async () => {
  const task = randomTask('descent over')
  const problem = problemOf(task, 'over')
  const [start] = coversOf(problem, 1, sum)
  const other = bestCovers(task, 2)[1]
  if (start === undefined || other === undefined) throw new Error('no cover')
  const clock = drifting(problem, 'over')
  const failing: WholeClock = {
    ...clock,
    time: async (covers) =>
      (await clock.time(covers)).map((times, at) =>
        covers[at]?.chosen.join() === start.chosen.join() ? times.map(() => Number.POSITIVE_INFINITY) : times,
      ),
  }
  const { wholes } = await descend(problem, [start, { ...other, variant: 0 }], [{ cost: sum }], failing)
  expect(wholes.at(-1)?.cover.chosen).toEqual(start.chosen)
  const cut = await descend(problem, [start], [{ cost: sum }], drifting(problem, 'over', 1), { within: 2 })
  expect(cut).toMatchObject({ isComplete: false, wholes: [{ cover: { chosen: start.chosen } }] })
})

it('with an aim for each shape, the best plans of each are found, too, and the one over all is as good', async () => {
  const better: number[] = []
  for (let at = 0; at < 60; at++) {
    const task = randomTask(`descent ${at}`)
    const problem = problemOf(task, `${at}`)
    const start = coversOf(problem, 1, sum)
    const aims = shapes.map((_, shape) => ({
      shape,
      cost: ({ [shape]: launch }: readonly Launch[]) => launch?.model ?? Number.POSITIVE_INFINITY,
    }))
    const one = await descend(problem, start, [{ cost: sum }], drifting(problem, `${at}`), { within: 2 })
    const each = await descend(problem, start, [{ cost: sum }, ...aims], drifting(problem, `${at}`), { within: 2 })
    const least = (wholes: typeof one.wholes, shape: number): number =>
      Math.min(...wholes.map(({ cover }) => secondsOf(problem, `${at}`, cover)[shape] ?? 0))
    for (const shape of shapes.keys()) {
      expect(least(each.wholes, shape)).toBeLessThanOrEqual(least(one.wholes, shape) * 1.05)
      better.push(least(each.wholes, shape) / least(one.wholes, shape))
    }
  }
  expect(Math.min(...better)).toBeLessThan(0.99)
})

it('plans that are ready are timed first, while the others are made ready', async () => {
  const task = randomTask('descent ready')
  const problem = problemOf(task, 'ready')
  const start = coversOf(problem, 1, sum)
  const clock = drifting(problem, 'ready')
  const ready = new Set(start.map(({ chosen }) => chosen.join()))
  const late: string[] = []
  const waiting: WholeClock = {
    ...clock,
    isReady: ({ chosen }) => ready.has(chosen.join()),
    prepare: (covers) => {
      for (const { chosen } of covers) ready.add(chosen.join())
    },
    time(covers) {
      late.push(...covers.flatMap(({ chosen }) => (ready.has(chosen.join()) ? [] : [chosen.join()])))
      return clock.time(covers)
    },
  }
  const { wholes, isComplete } = await descend(problem, start, [{ cost: sum }], waiting, { within: 2 })
  expect(isComplete).toBe(true)
  expect(wholes.length).toBeGreaterThan(1)
  expect(late).toEqual([])
})
