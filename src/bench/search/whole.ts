/** Whole plans of a search: the descent from the best covers by groups, and the plans that it ends with. */
import { coverOf, planOf } from '../../search/chosen.js'
import { coversOf, type Found, type GroupCost, jointCost, launchesOf, wholeId } from '../../search/covers.js'
import { type Descent, descend, type Whole, type WholeClock } from '../../search/descent.js'
import type { SearchResult } from '../../search/measured.js'
import { merged, wholeEntry, wholesOn } from '../../search/record.js'
import { summarise } from '../statistics.js'
import { Preparing } from './preparing.js'
import type { SearchRun, State } from './run_types.js'
import { timePlans } from './whole_plans.js'

/** Covers that the descent begins with. */
const starts = 6

/** Plans over all shapes that are compared at the end, and all of them, with the fastest at each shape. */
const [overall, compared] = [3, 7]

/** Times covers as whole plans, from the best by groups, as long as there is time. @throws as `timePlans` */
export async function descent(run: SearchRun, state: State, { covers, joint, prices }: SearchResult): Promise<Descent> {
  const { graph, about, shapes, stage, name, packed, known: kernels } = run
  const { problem } = run.problem
  const least = covers.map(([best]) => best?.cost ?? 1)
  const cost = jointCost(prices, least)
  const ofForms = problem.variants.flatMap((_, form) => coversOf(problem, 1, cost, (variant) => variant !== form))
  const { byRows = [] } = run.incumbent
  const few = run.plans.filter((plan) => byRows.some(({ plan: other }) => plan.name === other))
  const incumbent = [run.incumbent, ...few].flatMap((plan) => coverOf(run.problem, plan) ?? [])
  const first = [...joint.slice(0, 1), incumbent, ...ofForms, ...covers.flatMap(([best]) => best ?? []), ...joint.slice(1)].flat()
  const before = wholesOn(state.record.wholes, about.device)
  const known = (cover: Found): readonly number[] | undefined => {
    const seconds = problem.shapes.map((_, shape) => before.get(wholeId(problem, shape, cover)))
    return seconds.every((each) => each !== undefined) ? seconds : undefined
  }
  const built = new Set([...run.problem.subjects.values()].flatMap(({ launch }) => (prices.has(launch) ? [launch.content] : [])))
  const ahead = new Preparing(stage, built)
  const clock: WholeClock = {
    isOver: () => run.isOver('plans'),
    isReady: (cover) => known(cover) !== undefined || launchesOf(problem, 0, cover).every(({ content }) => built.has(content)),
    prepare: (open) => {
      const launches = open.flatMap((cover) => launchesOf(problem, 0, cover))
      ahead.start(launches.flatMap(({ id }) => run.problem.subjects.get(id) ?? []))
    },
    async time(timed) {
      state.hasNews = true
      const plans = timed.map((cover) => planOf(name, graph, run.problem, cover, { packed, known: kernels }))
      const samples = await timePlans(stage, plans, { graph, shapes, names: state.names })
      return samples.map((each) =>
        'length' in each ? each.map((times) => summarise(times).median / 1000) : shapes.map(() => Number.POSITIVE_INFINITY),
      )
    },
  }
  const all = { cost }
  const single = problem.shapes.map((_, shape) => ({
    shape,
    cost: ({ [shape]: launch }: Parameters<GroupCost>[0]) =>
      launch === undefined ? Number.POSITIVE_INFINITY : prices.price(launch).seconds,
  }))
  const aims = single.length === 1 ? single : [all, ...single]
  return descend(problem, distinct(first).slice(0, starts), aims, clock, {
    known,
    async onStep(timed, best) {
      const wholes = timed.flatMap(({ cover, seconds }) =>
        problem.shapes.map((shape, at) => {
          const { device, driver } = about
          return wholeEntry({ whole: wholeId(problem, at, cover), of: graph.name, shape, device, driver }, seconds[at] ?? 0)
        }),
      )
      state.record = merged(state.record, { wholes })
      await run.save(state.record)
      const times = best?.seconds.map((seconds) => `${(seconds * 1e6).toFixed(1)} us`).join(', ')
      run.onStage?.(`${timed.length} whole plans timed, the best takes ${times ?? 'no time: none can be run'}`)
    },
  }).finally(() => ahead.close())
}

const distinct = (covers: readonly Found[]): readonly Found[] => [
  ...new Map(covers.map((cover) => [`${cover.variant}:${cover.chosen.join()}`, cover])).values(),
]

/** The fastest plans over all shapes, the best by groups, and those that are the fastest at a shape. */
export function finalists({ wholes, first }: Descent): readonly Whole[] {
  const run = wholes.filter(({ seconds }) => seconds.every(Number.isFinite))
  const shapes = run[0]?.seconds.map((_, shape) => shape) ?? []
  const own = shapes.flatMap((shape) => run.toSorted((a, b) => (a.seconds[shape] ?? 0) - (b.seconds[shape] ?? 0)).slice(0, 1))
  return [...new Set([...run.slice(0, overall), ...(first === undefined ? [] : [first]), ...own])].slice(0, compared)
}
