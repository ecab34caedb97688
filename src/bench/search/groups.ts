/** Measures groups on a device until a search of covers ends, saves their times, and checks the kernels of chosen plans against their nodes. */
import { availableParallelism } from 'node:os'
import { coverOf } from '../../search/chosen.js'
import { launchesOf, problemId } from '../../search/covers.js'
import { type Clock, measuredSearch, type Round, type SearchResult } from '../../search/measured.js'
import type { Launch, Measured } from '../../search/price.js'
import type { Subject } from '../../search/problem.js'
import { type Entry, entryOf, knownOn, measuredOf, merged } from '../../search/record.js'
import { type Timed, wrongSubjects } from './clock.js'
import { TimingQueue } from './queue.js'
import type { SearchRun, State } from './run_types.js'

/** Share of the compilers that may have nothing to do before further groups are chosen: those chosen later are chosen better. */
const idleShare = 0.25

/**
 * Measures until the search ends, and keeps what was measured, also if it is cancelled. Groups that were skipped count as refused in this search
 * alone: the next one tries them again.
 */
export async function measureGroups(run: SearchRun, state: State, mayBeFinished: boolean): Promise<SearchResult> {
  const { problem, about, stage, save } = run
  let last: Round | undefined
  let report: (launch: Launch, measured: Measured) => void = () => undefined
  const id = problemId(problem.problem)
  const isOver = (): boolean => run.isOver('groups')
  const onTimed = (subject: Subject, timed: Timed): void => {
    const { launch, group } = subject
    const nodes = group.group.names.join()
    state.hasNews = true
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
  const jobs = availableParallelism()
  const queue = new TimingQueue(stage, { isOver, onTimed, busy: Math.ceil(jobs * (1 - idleShare)) })
  const clock: Clock = {
    isOver,
    async time(launches, seen) {
      report = seen
      queue.start(launches.flatMap(({ id: launch }) => problem.subjects.get(launch) ?? []))
      await queue.next().finally(() => save(state.record))
      return queue.pending
    },
  }
  const { finished } = state.record
  const before = coverOf(problem, run.incumbent)
  const { shapes } = problem.problem
  const given = before === undefined ? [] : shapes.flatMap((_, shape) => launchesOf(problem.problem, shape, before))
  const result = await measuredSearch(problem.problem, clock, {
    known: knownOn(state.record.entries, about.device),
    given,
    batch: jobs,
    idle: () => jobs - queue.compiling,
    isFinished: mayBeFinished && finished.some((line) => line.finished === id && line.device === about.device),
    onRound: (round) => {
      last = round
      run.onRound?.(round, undefined)
    },
  }).finally(() => queue.close())
  const isFinal = result.ended !== 'time' && state.skipped.size === 0
  const ended = isFinal ? [{ finished: id, of: run.graph.name, device: about.device }] : []
  state.record = merged(state.record, { finished: ended })
  return result
}

/** False for a node on its own, whose kernel is that of its op or the library's. */
const isDerived = ({ group, form }: Subject): boolean => group.group.launch.graph !== form.space.candidates.graph

/** Checks the kernels of launches that were not checked before. Those that are wrong are refused at every size. @returns their nodes and reasons */
export async function checkKernels(run: SearchRun, state: State, launches: readonly Launch[]): Promise<readonly string[]> {
  const { problem, about, stage } = run
  const own = state.record.entries.filter(({ device, dtype }) => device === about.device && dtype === about.dtype)
  const passed = new Set(own.flatMap(({ content, checked }) => (checked === true ? [content] : [])))
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
