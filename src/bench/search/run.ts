/**
 * A search on a device, from the groups of a graph to plans that were timed whole: measures groups and saves their times, times whole plans around
 * the best of them, compares the fastest with the plan there was, and checks the kernels of those that are written against their nodes.
 */
import type { PlanDecl } from '../../lang/plan.js'
import { planOf, type Reason, reasonsOf, samePlan } from '../../search/chosen.js'
import { launchesOf } from '../../search/covers.js'
import type { Whole } from '../../search/descent.js'
import type { SearchResult } from '../../search/measured.js'
import { summarise } from '../statistics.js'
import { decide } from './confirm.js'
import { checkKernels, measureGroups } from './groups.js'
import type { SearchRun, State } from './run_types.js'
import { descent, finalists } from './whole.js'
import { KernelNames, timePlans } from './whole_plans.js'

/** Largest ratio to the best plan of a shape at which one plan for all shapes is preferred. */
const oneForAll = 1.02

/** A plan that a search found. */
export interface FoundPlan {
  readonly plan: PlanDecl
  readonly reasons: readonly Reason[]
  /** Shapes at which it is the best by more than the plan for all of them; undefined for that plan. */
  readonly only?: readonly number[]
}

/** A plan that was timed whole beside others at the end. */
export interface Compared {
  readonly name: string
  /** Median milliseconds at each shape; undefined if it cannot be run. */
  readonly medians: readonly number[] | undefined
}

export interface SearchOutcome {
  readonly result: SearchResult
  /** The plan that is best over all shapes, then others for single shapes. */
  readonly plans: readonly FoundPlan[]
  /** The plan to beat, the best that was found, and those beside; empty if nothing was timed whole at the end. */
  readonly compared: readonly Compared[]
  /** Whole plans that were timed. */
  readonly wholes: number
  /** True if the plan is the incumbent. */
  readonly stays: boolean
  readonly wrong: readonly string[]
  /** Groups for which the device had no room. */
  readonly skipped: readonly string[]
}

export async function runSearch(run: SearchRun): Promise<SearchOutcome> {
  const state: State = { record: run.record, skipped: new Map(), names: new KernelNames(), hasNews: false }
  const wrong: string[] = []
  for (;;) {
    const result = await measureGroups(run, state, wrong.length === 0)
    run.onStage?.('timing whole plans')
    const descended = await descent(run, state, result)
    const ends = finalists(descended)
    const about = { result, wrong, skipped: [...state.skipped.values()], wholes: descended.wholes.length }
    const ending = await compare(run, state, ends)
    run.onStage?.('checking the kernels of the best plans')
    const { problem } = run.problem
    const chosen = ending.chosen.flatMap(({ at }) => ends[at] ?? [])
    const launches = chosen.flatMap(({ cover }) => problem.shapes.flatMap((_, shape) => launchesOf(problem, shape, cover)))
    const failed = await checkKernels(run, state, launches)
    wrong.push(...failed)
    await run.save(state.record)
    if (failed.length > 0) continue
    const plans = ending.chosen.flatMap(({ at, only }, place) => foundPlan(run, result, ends[at], place, only))
    return { ...about, plans, compared: ending.compared, stays: ending.stays }
  }
}

interface Ending {
  /** Places among the finalists of the plan for all shapes, and of those for some. */
  readonly chosen: readonly { readonly at: number; readonly only?: readonly number[] }[]
  readonly compared: readonly Compared[]
  readonly stays: boolean
}

/** Times the incumbent, the finalists and the plans beside, interleaved, and chooses among the first two. */
async function compare(run: SearchRun, state: State, ends: readonly Whole[]): Promise<Ending> {
  const { stage, graph, incumbent, beside, shapes } = run
  const plans = ends.map(({ cover }) => planOf(run.name, graph, run.problem, cover, run))
  const [first] = plans
  if (first === undefined) return { chosen: [], compared: [], stays: true }
  // Without news, an earlier search has chosen the incumbent among the same plans: it stays, whatever times say now.
  const hasWon = samePlan(first, incumbent) || (!state.hasNews && plans.some((plan) => samePlan(plan, incumbent)))
  if (hasWon && beside.length === 0) return { chosen: [], compared: [], stays: true }
  const timed = await timePlans(stage, [incumbent, ...plans, ...beside], { graph, shapes, names: state.names })
  const [before, ...others] = timed.map((each) => ('length' in each ? each : undefined))
  const found = others.slice(0, plans.length).flatMap((samples, at) => (samples === undefined ? [] : [{ samples, at }]))
  const { place } = decide([...(before === undefined ? [] : [before]), ...found.map(({ samples }) => samples)])
  const best = found[before === undefined ? place : place - 1]
  const mediansOf = (samples: (typeof others)[number]): readonly number[] | undefined =>
    samples?.map((times) => summarise(times).median)
  const compared = [
    { name: incumbent.name, medians: mediansOf(before) },
    { name: run.name, medians: mediansOf(best?.samples ?? found[0]?.samples) },
    ...beside.map(({ name }, at) => ({ name, medians: mediansOf(others[plans.length + at]) })),
  ]
  if (best === undefined) return { chosen: [], compared, stays: true }
  const own = mediansOf(best.samples) ?? []
  const faster = new Map<number, number[]>()
  for (const [shape, median] of own.entries()) {
    const [least] = found.toSorted((a, b) => (mediansOf(a.samples)?.[shape] ?? 0) - (mediansOf(b.samples)?.[shape] ?? 0))
    if (least === undefined || median <= oneForAll * (mediansOf(least.samples)?.[shape] ?? 0)) continue
    faster.set(least.at, [...(faster.get(least.at) ?? []), shape])
  }
  const chosen = [{ at: best.at }, ...[...faster].map(([at, only]) => ({ at, only }))]
  return { chosen, compared, stays: false }
}

function foundPlan(
  run: SearchRun,
  result: SearchResult,
  whole: Whole | undefined,
  place: number,
  only: readonly number[] | undefined,
): readonly FoundPlan[] {
  if (whole === undefined) return []
  const name = place === 0 ? run.name : `${run.name}-${place + 1}`
  const plan = planOf(name, run.graph, run.problem, whole.cover, run)
  return [{ plan, reasons: reasonsOf(run.problem, result, whole.cover), ...(only === undefined ? {} : { only }) }]
}
