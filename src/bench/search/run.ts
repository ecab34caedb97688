/**
 * A search on a device, from the groups of a graph to plans that were timed whole: measures groups and saves their times, checks the kernels of the
 * plans it ends with against their nodes, and compares these plans with the one there was.
 */
import type { Graph } from '../../ir/graph.js'
import type { PlanDecl } from '../../lang/plan.js'
import { oneForAll, planOf, type Reason, reasonsOf, type Scored, samePlan, scored } from '../../search/chosen.js'
import type { KnownKernels } from '../../search/kernel_names.js'
import { type Clock, launchesOf, measuredSearch, problemId, type Round, type SearchResult } from '../../search/measured.js'
import type { Launch, Measured } from '../../search/price.js'
import type { GraphProblem, Subject } from '../../search/problem.js'
import { type About, type Entry, entryOf, knownOn, measuredOf, merged, type SearchRecord } from '../../search/record.js'
import { type SearchStage, type Timed, wrongSubjects } from './clock.js'
import { decide, timePlans, type Verdict } from './confirm.js'
import { TimingQueue } from './queue.js'

export interface SearchRun {
  readonly stage: SearchStage
  readonly graph: Graph
  readonly problem: GraphProblem
  readonly about: About
  readonly record: SearchRecord
  /** The plan to beat. */
  readonly incumbent: PlanDecl
  /** Name of the plan to write. */
  readonly name: string
  readonly packed: PlanDecl['packed']
  readonly known: KnownKernels
  /** Dimensions of each shape. */
  readonly shapes: readonly Readonly<Record<string, number>>[]
  /** True once no further group is to be measured. */
  readonly isOver: () => boolean
  readonly save: (record: SearchRecord) => Promise<void>
  readonly onRound?: (round: Round, result: { readonly subject: Subject; readonly entry: Entry } | undefined) => void
  readonly onStage?: (stage: string) => void
}

/** A plan that a search found. */
export interface FoundPlan {
  readonly plan: PlanDecl
  readonly reasons: readonly Reason[]
  /** Predicted seconds at each shape. */
  readonly seconds: readonly number[]
  /** Shapes at which it is the best by more than the plan for all of them; undefined for that plan. */
  readonly only?: readonly number[]
}

export interface SearchOutcome {
  readonly result: SearchResult
  /** The plan that is best over all shapes, then others for single shapes. */
  readonly plans: readonly FoundPlan[]
  /** Comparison of the incumbent, which is the first, with the plans that were timed whole; undefined if nothing was timed. */
  readonly verdict: Verdict | undefined
  /** True if the plan is the incumbent. */
  readonly stays: boolean
  readonly wrong: readonly string[]
  /** Groups for which the device had no room. */
  readonly skipped: readonly string[]
}

/** Results of a search so far. */
interface State {
  record: SearchRecord
  readonly skipped: Map<string, string>
}

/** Covers that are checked, and timed as whole plans. */
const compared = 3

export async function runSearch(run: SearchRun): Promise<SearchOutcome> {
  const { stage, graph, problem, name, packed, known, incumbent, shapes } = run
  const state: State = { record: run.record, skipped: new Map() }
  const wrong: string[] = []
  for (;;) {
    const result = await searched(run, state, wrong.length === 0)
    const best = scored(problem, result).slice(0, compared)
    run.onStage?.('checking the kernels of the best plans')
    const failed = await check(run, state, best)
    wrong.push(...failed)
    await run.save(state.record)
    if (failed.length > 0) continue
    const about = { result, wrong, skipped: [...state.skipped.values()] }
    const found = best.map((each) => planOf(name, graph, problem, each.cover, { packed, known }))
    const [first] = found
    if (first === undefined || result.best.length === 0) return { ...about, plans: [], verdict: undefined, stays: true }
    if (samePlan(first, incumbent)) {
      const plans = [foundPlan(run, result, best[0], incumbent)].flatMap((each) => each ?? [])
      return { ...about, plans, verdict: undefined, stays: true }
    }
    run.onStage?.('timing whole plans')
    const verdict = decide(await timePlans(stage, graph, [incumbent, ...found], shapes))
    const at = Math.max(0, verdict.place - 1)
    const chosen = foundPlan(run, result, best[at], found[at])
    const others = chosen === undefined || verdict.place === 0 ? [] : forShapes(run, result, chosen)
    return { ...about, plans: chosen === undefined ? [] : [chosen, ...others], verdict, stays: verdict.place === 0 }
  }
}

function foundPlan(
  run: SearchRun,
  result: SearchResult,
  score: Scored | undefined,
  plan: PlanDecl | undefined,
): FoundPlan | undefined {
  if (score === undefined || plan === undefined) return undefined
  return { plan, reasons: reasonsOf(run.problem, result, score.cover), seconds: score.seconds }
}

/** Plans for the shapes at which the one for all is more than two percent from the best. */
function forShapes(run: SearchRun, result: SearchResult, { seconds }: FoundPlan): readonly FoundPlan[] {
  const { problem, graph, name, packed, known } = run
  const all = scored(problem, result)
  const plans = new Map<Scored, number[]>()
  for (const [shape, [best]] of result.covers.entries()) {
    if (best === undefined || (seconds[shape] ?? 0) <= oneForAll * best.cost) continue
    const score = all.find(({ cover }) => cover.variant === best.variant && cover.chosen.join() === best.chosen.join())
    if (score !== undefined) plans.set(score, [...(plans.get(score) ?? []), shape])
  }
  return [...plans].flatMap(([score, only], at) => {
    const plan = planOf(`${name}-${at + 2}`, graph, problem, score.cover, { packed, known })
    return [foundPlan(run, result, score, plan)].flatMap((each) => (each === undefined ? [] : [{ ...each, only }]))
  })
}

/**
 * Measures until the search ends, and keeps what was measured, also if it is cancelled. Groups that were skipped count as refused in this search
 * alone: the next one tries them again.
 */
async function searched(run: SearchRun, state: State, mayBeFinished: boolean): Promise<SearchResult> {
  const { problem, about, stage, isOver, save } = run
  let last: Round | undefined
  let report: (launch: Launch, measured: Measured) => void = () => undefined
  const id = problemId(problem.problem)
  const onTimed = (subject: Subject, timed: Timed): void => {
    const { launch, group } = subject
    const nodes = group.group.names.join()
    if ('skipped' in timed) {
      state.skipped.set(launch.id, `${nodes}: ${timed.skipped}`)
      report(launch, { refused: timed.skipped })
      return
    }
    const entry = entryOf(launch, nodes, about, timed)
    state.record = merged(state.record, { entries: [entry] })
    report(launch, measuredOf(entry))
    if (last !== undefined) run.onRound?.(last, { subject, entry })
  }
  const queue = new TimingQueue(stage, { isOver, onTimed })
  const clock: Clock = {
    isOver,
    async time(launches, seen) {
      report = seen
      queue.start(launches.flatMap(({ id: launch }) => problem.subjects.get(launch) ?? []))
      await queue.next(mostUnderway).finally(() => save(state.record))
      return queue.pending
    },
  }
  const result = await measuredSearch(problem.problem, clock, {
    known: knownOn(state.record.entries, about.device),
    isFinished: mayBeFinished && state.record.finished.some(({ finished, device }) => finished === id && device === about.device),
    onRound: (round) => {
      last = round
      run.onRound?.(round, undefined)
    },
  }).finally(() => queue.close())
  const isFinal = result.ended !== 'time' && state.skipped.size === 0
  const finished = isFinal ? [{ finished: id, of: run.graph.name, device: about.device }] : []
  state.record = merged(state.record, { finished })
  return result
}

/** Launches that may still be compiled or timed when more are added. */
const mostUnderway = 8

/** False for a node on its own, whose kernel is that of its op or the library's. */
const isDerived = ({ group, form }: Subject): boolean => group.group.launch.graph !== form.space.candidates.graph

/** Checks the kernels of covers that were not checked before. Those that are wrong are refused at every size. @returns their nodes and reasons */
async function check(run: SearchRun, state: State, best: readonly Scored[]): Promise<readonly string[]> {
  const { problem, about, stage } = run
  const own = state.record.entries.filter(({ device, dtype }) => device === about.device && dtype === about.dtype)
  const passed = new Set(own.flatMap(({ content, checked }) => (checked === true ? [content] : [])))
  const launches = best.flatMap(({ cover }) =>
    problem.problem.shapes.flatMap((_, shape) => launchesOf(problem.problem, shape, cover)),
  )
  const open = new Map(launches.flatMap((launch) => (passed.has(launch.content) ? [] : [[launch.content, launch]])))
  const subjects = [...open.values()].flatMap(({ id }) => problem.subjects.get(id) ?? []).filter(isDerived)
  const wrong = await wrongSubjects(stage, subjects)
  const reasons = new Map(wrong.map(({ launch, reason }) => [launch.content, reason]))
  const entries = own.flatMap((entry): Entry[] =>
    open.has(entry.content) && !reasons.has(entry.content) ? [{ ...entry, checked: true }] : [],
  )
  const refused = [...problem.subjects.values()].flatMap(({ launch, group }) => {
    const reason = reasons.get(launch.content)
    return reason === undefined ? [] : [entryOf(launch, group.group.names.join(), about, { refused: reason })]
  })
  state.record = merged(state.record, { entries: [...entries, ...refused] })
  return wrong.map(({ launch, reason }) => `${problem.subjects.get(launch.id)?.group.group.names.join(', ')}: ${reason}`)
}
