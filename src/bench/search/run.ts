/**
 * A search on a device, from the groups of a graph to plans that were timed whole: measures groups and saves their times, times whole plans around
 * the best of them, compares the fastest with the plan there was, and checks the kernels of those that are written against their nodes.
 */
import type { PlanDecl } from '../../lang/plan.js'
import { kernelsOf, planOf, type Reason, reasonsOf } from '../../search/chosen.js'
import { launchesOf } from '../../search/covers.js'
import type { SearchResult } from '../../search/measured.js'
import { type Chosen, type Compared, compare } from './ending.js'
import { checkKernels, measureGroups } from './groups.js'
import type { SearchRun, State } from './run_types.js'
import { descent, finalists } from './whole.js'
import { KernelNames } from './whole_plans.js'

/** A plan that a search found. */
export interface FoundPlan {
  readonly plan: PlanDecl
  readonly reasons: readonly Reason[]
  /** Shapes at which it is the best by more than the plan for all of them; undefined for that plan. */
  readonly only?: readonly number[]
  /** Most rows at which the plan for all shapes gives way to it. */
  readonly most?: number
}

export interface SearchOutcome {
  readonly result: SearchResult
  /** The plan that is best over all shapes, then those that it names for few rows, then others for single shapes. */
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
    const launches = ending.chosen.flatMap(({ cover }) => problem.shapes.flatMap((_, shape) => launchesOf(problem, shape, cover)))
    const failed = await checkKernels(run, state, launches)
    wrong.push(...failed)
    await run.save(state.record)
    if (failed.length > 0) continue
    return { ...about, plans: foundPlans(run, result, ending.chosen), compared: ending.compared, stays: ending.stays }
  }
}

/** Plans to write, with their names: those for few rows are named by the first. */
export function foundPlans(
  run: Pick<SearchRun, 'name' | 'graph' | 'problem' | 'packed' | 'known'>,
  result: SearchResult,
  chosen: readonly Chosen[],
): readonly FoundPlan[] {
  const nameAt = (place: number): string => (place === 0 ? run.name : `${run.name}-${place + 1}`)
  const few = chosen.flatMap(({ most }, place) => (most === undefined ? [] : [{ most, plan: nameAt(place) }]))
  let known = run.known
  return chosen.map(({ cover, ...when }, place): FoundPlan => {
    const plan = planOf(nameAt(place), run.graph, run.problem, cover, { packed: run.packed, known })
    known = new Map([...known, ...kernelsOf(run.problem, cover, plan)])
    const isMain = place === 0 && few.length > 0
    return { plan: isMain ? { ...plan, byRows: few } : plan, reasons: reasonsOf(run.problem, result, cover), ...when }
  })
}
