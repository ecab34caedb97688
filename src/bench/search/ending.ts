/**
 * The end of a search: times the plan to beat and the finalists side by side, and chooses the plan for all shapes, those that run instead of it at few
 * rows, and those that are faster at single shapes.
 */
import { evaluateExtent } from '../../ir/shape.js'
import type { PlanDecl } from '../../lang/plan.js'
import { rowsIn } from '../../search/by_rows.js'
import { planOf, samePlan } from '../../search/chosen.js'
import type { Found } from '../../search/covers.js'
import type { Whole } from '../../search/descent.js'
import { summarise } from '../statistics.js'
import { type ByRows, byRows, preferred, runsAt } from './by_rows.js'
import { decide } from './confirm.js'
import type { SearchRun, State } from './run_types.js'
import { type Samples, timePlans } from './whole_plans.js'

/** A plan that was timed whole beside others at the end. */
export interface Compared {
  readonly name: string
  /** Median milliseconds at each shape; undefined if it cannot be run. */
  readonly medians: readonly number[] | undefined
}

/** A plan to write: for all shapes; for at most so many rows; or for the given shapes. */
export interface Chosen {
  readonly cover: Found
  readonly most?: number
  readonly only?: readonly number[]
}

export interface Ending {
  /** The plan for all shapes first. */
  readonly chosen: readonly Chosen[]
  readonly compared: readonly Compared[]
  readonly stays: boolean
}

/** A finalist that could be run. */
interface Runner {
  readonly plan: PlanDecl
  readonly cover: Found
  readonly samples: Samples
}

/** @throws as `timePlans` */
export async function compare(run: SearchRun, state: State, ends: readonly Whole[]): Promise<Ending> {
  const { stage, graph, incumbent, beside, shapes, plans: known } = run
  const plans = ends.map(({ cover }) => planOf(run.name, graph, run.problem, cover, run))
  const stays = { chosen: [], stays: true }
  const isSame = (plan: PlanDecl): boolean => samePlan(plan, incumbent)
  // Without news, an earlier search has chosen the incumbent among the same plans: it stays, whatever times say now.
  const hasWon = state.hasNews ? plans.slice(0, 1).some(isSame) && shapes.length === 1 : plans.some(isSame)
  if (plans.length === 0 || (hasWon && beside.length === 0)) return { ...stays, compared: [] }
  const timed = await timePlans(stage, [incumbent, ...plans, ...beside], { graph, shapes, names: state.names, known })
  const [before, ...others] = timed.map((each) => ('length' in each ? each : undefined))
  const runners = ends.flatMap(({ cover }, at): Runner[] => {
    const [plan, samples] = [plans[at], others[at]]
    return plan === undefined || samples === undefined ? [] : [{ plan, cover, samples }]
  })
  const { place } = decide([...(before === undefined ? [] : [before]), ...runners.map(({ samples }) => samples)])
  const isBefore = before !== undefined && place === 0
  const main = isBefore ? runners.findIndex(({ plan }) => isSame(plan)) : place - (before === undefined ? 0 : 1)
  const split = splitOf(run, runners, main)
  const samples = split && shapes.map((_, shape) => runners[runsAt(split, split.rows, shape)]?.samples[shape] ?? [])
  const compared = [
    { name: incumbent.name, medians: mediansOf(before) },
    { name: run.name, medians: mediansOf(samples ?? runners[0]?.samples) },
    ...beside.map(({ name }, at) => ({ name, medians: mediansOf(others[plans.length + at]) })),
  ]
  if (split === undefined || (isBefore && hasFew(run, runners, split, main))) return { ...stays, compared }
  const chosen = (at: number, more: Omit<Chosen, 'cover'>): readonly Chosen[] =>
    runners.slice(at, at + 1).map(({ cover }) => ({ cover, ...more }))
  const few = split.few.flatMap(({ most, at }) => chosen(at, { most }))
  const single = [...split.others].flatMap(([at, only]) => chosen(at, { only }))
  return { chosen: [...chosen(split.main, {}), ...few, ...single], compared, stays: false }
}

const mediansOf = (samples: Samples | undefined): readonly number[] | undefined =>
  samples?.map((times) => summarise(times).median)

interface Split extends ByRows {
  /** Rows of each shape. */
  readonly rows: readonly number[]
}

function splitOf({ problem, shapes }: SearchRun, runners: readonly Runner[], main: number): Split | undefined {
  const variant = runners[main]?.cover.variant
  const graph = problem.forms[variant ?? -1]?.space.candidates.graph
  if (graph === undefined) return undefined
  const extent = rowsIn(graph)
  const rows = extent === undefined ? shapes.map(() => 1) : shapes.map((dims) => evaluateExtent(extent, dims))
  const samples = runners.map((each) => each.samples)
  const fits = (at: number): boolean => extent !== undefined && runners[at]?.cover.variant === variant
  return { rows, ...byRows(rows, preferred(samples, main), main, fits) }
}

/** True if the incumbent gives few rows to the same plans already. */
function hasFew({ incumbent, plans }: SearchRun, runners: readonly Runner[], { main, few }: ByRows, before: number): boolean {
  const { byRows: own = [] } = incumbent
  const isSame = (at: number, name: string | undefined): boolean => {
    const [plan, other] = [runners[at]?.plan, plans.find((each) => each.name === name)]
    return plan !== undefined && other !== undefined && samePlan(plan, other)
  }
  return (
    main === before &&
    own.length === few.length &&
    few.every(({ most, at }, i) => own[i]?.most === most && isSame(at, own[i]?.plan))
  )
}
