/** Views of measured runs: single runs, comparisons of two, and comparisons with predictions. */
import { verdictOf } from '../../bench/target/baseline.js'
import { unreachable } from '../../errors.js'
import type { PlanReport } from '../../search/explain.js'
import type { BenchView, Dot, Run, RunComparison, Timeline } from '../model.js'
import { encoderView } from './encoder.js'
import { machinesView } from './machines.js'
import { decodingView, llamaView, savedView, targetView } from './others.js'
import { kernelName, measuredTimeline } from './profile.js'
import type { AnyRun } from './read.js'
import { dimsText, sizeText } from './text.js'

function viewOf(any: AnyRun): Omit<Run, 'file'> {
  switch (any.kind) {
    case 'encoder':
      return encoderView(any.run)
    case 'target':
      return targetView(any.run)
    case 'decoding':
      return decodingView(any.run)
    case 'llama':
      return llamaView(any.run)
    case 'saved':
      return savedView(any.run)
    case 'machines':
      return machinesView(any.run)
    default:
      return unreachable(any, 'run')
  }
}

/** Samples by name and shape of rows; empty if a run has summaries only. */
function samplesOf(any: AnyRun): ReadonlyMap<string, readonly number[]> {
  const key = (name: string, shape: string): string => `${name}\n${shape}`
  switch (any.kind) {
    case 'target':
      return new Map(any.run.sizes.flat().map(({ plan, dims, samples }) => [key(plan, dimsText(dims)), samples]))
    case 'saved':
      return new Map(any.run.results.map(({ plan, dims, samples }) => [key(plan, dimsText(dims)), samples]))
    case 'llama':
      return new Map(
        any.run.plans.flatMap(({ times }) =>
          times.map(({ plan, what, samples, ...shape }) => [key(plan, `${what} ${sizeText(shape)}`), samples]),
        ),
      )
    default:
      return new Map()
  }
}

/** Comparisons of rows that both runs have. */
export function compareRuns(before: AnyRun, now: AnyRun, limit: number): RunComparison[] {
  const [first, second] = [viewOf(before).rows, viewOf(now).rows]
  const [old, recent] = [samplesOf(before), samplesOf(now)]
  return second.flatMap((row): RunComparison[] => {
    const { name, shape } = row
    const same = first.find((each) => each.name === name && each.shape === shape)
    if (same === undefined) return []
    const [a, b] = [same.milliseconds.median, row.milliseconds.median]
    const about = { name, shape, before: a, now: b, ratio: b / a }
    const [was, is] = [old.get(`${name}\n${shape}`), recent.get(`${name}\n${shape}`)]
    if (was === undefined || is === undefined) return [{ ...about, verdict: 'not tested' }]
    const tested = verdictOf(is, was, limit)
    return [{ ...about, ...(tested ?? { verdict: 'not tested' as const }) }]
  })
}

/** Microseconds per launch of each kernel under a plan, if a run timed the plan's kernels separately. */
export function measuredKernels(runs: readonly Run[], plan: string): ReadonlyMap<string, number> {
  const found = runs.flatMap(({ rows }) => rows).find(({ name, profile }) => name === plan && profile !== undefined)
  return new Map(
    (found?.profile ?? []).flatMap(({ kernel, count, milliseconds }): [string, number][] => {
      const each = (1e3 * milliseconds) / count
      // A library matmul has no generated kernel: its step has the name of its node.
      const matmul = /^matmul (.*)$/.exec(kernel)?.[1]
      return [[matmul ?? kernelName(kernel), each]]
    }),
  )
}

/** Roofline dots of a plan's kernels: work by the cost model, measured time. The arithmetic of row programs is not counted. */
function kernelDots({ plan, steps }: PlanReport, measured: ReadonlyMap<string, number>): Dot[] {
  const dots = steps.flatMap(({ kernel, flops, bytesRead, bytesWritten }): Dot[] => {
    const time = measured.get(kernel)
    if (time === undefined || flops === 0) return []
    return [
      { name: kernel, of: plan, peer: false, intensity: flops / (bytesRead + bytesWritten), attained: (1e6 * flops) / time },
    ]
  })
  return [...new Map(dots.map((dot) => [`${dot.name} ${dot.intensity}`, dot])).values()]
}

/** Setting of predicted costs of plans. */
interface Priced {
  readonly dtype: string
  readonly device: string
}

/** Note on a run whose setting differs from that of predicted costs. */
function unlikeNote({ facts }: Pick<Run, 'facts'>, priced: Priced | undefined): readonly string[] {
  if (priced === undefined) return []
  const factOf = (fact: string): string | undefined => facts.find(({ name }) => name === fact)?.value
  const [dtype, device] = [factOf('storage type'), factOf('device')]
  const isOther =
    (dtype !== undefined && dtype !== priced.dtype) ||
    (device !== undefined && priced.device !== 'here' && !device.toLowerCase().includes(priced.device))
  const run = [dtype, device].filter((each) => each !== undefined).join(' on ')
  return isOther
    ? [`Measured in ${run}. The plans are predicted for ${priced.dtype} on ${priced.device}: do not compare them.`]
    : []
}

/**
 * View of runs in the given order. The second run is compared with the first.
 * @param priced setting of predicted costs of the page's plans
 */
export function benchView(
  given: readonly { readonly file?: string | undefined; readonly any: AnyRun }[],
  reports: readonly PlanReport[],
  limit: number,
  priced?: Priced,
): BenchView | undefined {
  const [first, second] = given
  if (first === undefined) return undefined
  const runs = given.map(({ file, any }): Run => {
    const view = viewOf(any)
    return { ...view, notes: [...unlikeNote(view, priced), ...view.notes], ...(file === undefined ? {} : { file }) }
  })
  const predictions = reports.flatMap((report) => {
    const measured = measuredKernels(runs, report.plan)
    const steps = report.steps.flatMap(({ kernel, microseconds }) => {
      const time = measured.get(kernel)
      return time === undefined ? [] : [{ name: kernel, plan: report.plan, predicted: microseconds, measured: time }]
    })
    return [...new Map(steps.map((step) => [`${step.name} ${step.predicted}`, step])).values()]
  })
  const dots = reports.flatMap((report) => kernelDots(report, measuredKernels(runs, report.plan)))
  const comparisons = second === undefined ? [] : compareRuns(first.any, second.any, limit)
  const [latest] = runs.slice(-1)
  return {
    runs: runs.map((run) => (run === latest ? { ...run, dots: [...run.dots, ...dots] } : run)),
    comparisons,
    limit,
    predictions,
  }
}

/** Timelines of decoding and generation steps with separately timed kernels. */
export function runTimelines(given: readonly { readonly any: AnyRun }[]): Timeline[] {
  return given.flatMap(({ any }) => {
    if (any.kind === 'decoding') {
      return any.run.results.flatMap(({ plan, batch, width, step, profile }) =>
        measuredTimeline(`${plan}, batch ${batch}${width === 1 ? '' : `, ${width} beams`}`, step.median, profile),
      )
    }
    if (any.kind !== 'llama') return []
    return any.run.plans.flatMap(({ times }) =>
      times.flatMap((time) =>
        time.what === 'step' ? measuredTimeline(`${time.plan}, ${sizeText(time)}`, time.milliseconds.median, time.profile) : [],
      ),
    )
  })
}

/** Timeline of a graph's steps under a plan, with predicted costs. */
export const predictedTimeline = ({ plan, graph, steps, totals }: PlanReport): Timeline => ({
  title: `${graph} under ${plan}`,
  ordered: true,
  source: 'predicted',
  total: totals.microseconds,
  spans: steps.map(({ kernel, kind, microseconds }) => ({ name: kernel, kind, count: 1, microseconds })),
})
