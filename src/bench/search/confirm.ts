/**
 * Whole plans at the end of a search: launches overlap, so the sum of groups is no measure of a plan. A plan replaces the one before it only if it
 * is faster by more than two percent and a rank test agrees: a search that is repeated ends with the same plan.
 */
import { applyPlan } from '../../fuse/apply.js'
import { type PlannedKernel, sameKernel } from '../../fuse/planned_kernel.js'
import type { Graph } from '../../ir/graph.js'
import { kernelName } from '../../ir/op_name.js'
import type { PlanDecl } from '../../lang/plan.js'
import { demandedKernels } from '../../runtime/demand.js'
import { renamedKernel } from '../../search/kernel_names.js'
import { linkGraph } from '../../search/link.js'
import { contentOfKernel, nameOfContent } from '../../search/problem.js'
import { prepareText } from '../../verify/check/prepare.js'
import { summarise } from '../statistics.js'
import { chanceOf, fewestSamples } from '../target/baseline.js'
import { measure } from '../target/measure.js'
import { graphSubject } from '../target/subject.js'
import type { SearchStage } from './clock.js'
import { presentIn } from './launch.js'

/** Samples in milliseconds of a plan, at each shape. */
export type Samples = readonly (readonly number[])[]

/** Smallest ratio of a replaced plan to the one that replaces it, and the chance of it that is accepted. */
const [leastRatio, most] = [1.02, 0.01]

export interface Verdict {
  /** Place of the plan that stays at the end. */
  readonly place: number
  /** Geometric mean over the shapes of its time in relation to that of the first. */
  readonly ratio: number
  /** Median milliseconds of each plan at each shape. */
  readonly medians: readonly (readonly number[])[]
}

/** The plan that stays: the first, unless a later one is faster than the one that stays so far. */
export function decide(plans: readonly Samples[]): Verdict {
  const medians = plans.map((samples) => samples.map((each) => summarise(each).median))
  const ratioOf = (one: number, other: number): number => {
    const logs = (medians[one] ?? []).map((each, shape) => Math.log(each / (medians[other]?.[shape] ?? Number.NaN)))
    return Math.exp(logs.reduce((sum, each) => sum + each, 0) / logs.length)
  }
  const isFaster = (one: number, other: number): boolean =>
    (plans[one] ?? []).some((samples, shape) => {
      const before = plans[other]?.[shape] ?? []
      const enough = Math.min(samples.length, before.length) >= fewestSamples
      return enough && chanceOf(samples, before) < most && summarise(samples).median < summarise(before).median
    })
  let place = 0
  for (let at = 1; at < plans.length; at++) if (ratioOf(at, place) * leastRatio < 1 && isFaster(at, place)) place = at
  return { place, ratio: ratioOf(place, 0), medians }
}

/** Times whole plans of a graph, interleaved. @throws usage `plan.*` for one that cannot be applied; as `measure` */
export async function timePlans(
  stage: SearchStage,
  graph: Graph,
  plans: readonly PlanDecl[],
  shapes: readonly Readonly<Record<string, number>>[],
): Promise<readonly Samples[]> {
  const { root, device, ops, byName, layouts, tuning, dtype, repeats, signal, onProgress } = stage
  const kernels = new Map<string, PlannedKernel>()
  const graphs: Record<string, Record<string, Graph>> = {}
  for (const [at, plan] of plans.entries()) {
    const planned = applyPlan(graph, byContent(graph, plan, at, stage, kernels), ops, byName)
    for (const [name, kernel] of [...planned.kernels, ...planned.templates]) kernels.set(name, kernel)
    for (const node of planned.graph.nodes) {
      const own = node.kind === 'op' ? ops.get(node.op) : undefined
      if (own !== undefined) kernels.set(kernelName(own.name), { ...own, name: kernelName(own.name) })
    }
    graphs[`${at}`] = { [graph.name]: linkGraph(planned.graph) }
  }
  const matmuls = tuning === undefined ? undefined : { ...tuning, entries: [] }
  const text = await prepareText(root, { graphs, schedules: {} }, [...kernels.values()], {
    dtypes: [dtype, 'i32'],
    tuning: matmuls,
    alone: true,
  })
  try {
    const { manifest } = text.searched
    const library = demandedKernels(device, text.searched, { root, signal, onProgress })
    const names = plans.map((_, at) => `${at}`)
    const subject = graphSubject(graph, manifest, names)
    const bench = { device, library, manifest, layouts, ceilings: undefined, dtype, repeats, signal }
    const found: number[][][] = plans.map(() => [])
    for (const dims of shapes) {
      const given = Object.fromEntries(
        subject.forms.flatMap((form) => ('graph' in form ? Object.entries(presentIn(form.graph, dims)) : [])),
      )
      const times = await measure(bench, subject, given)
      for (const [at, { samples }] of times.entries()) found[at]?.push([...samples])
    }
    return found
  } finally {
    await text.remove()
  }
}

/**
 * A plan whose kernels have the names under which they were timed in the search: most are compiled already. Those that are not the same kernel as
 * another of that name have names of their own.
 */
function byContent(
  graph: Graph,
  plan: PlanDecl,
  at: number,
  { ops, byName }: SearchStage,
  taken: ReadonlyMap<string, PlannedKernel>,
): PlanDecl {
  const own = (name: string): string => `p${at}_${name}`
  const planned = applyPlan(graph, renamed(plan, own), ops, byName)
  const names = new Map<string, string>()
  for (const { kernel: name } of plan.groups) {
    const kernel = planned.kernels.get(own(name)) ?? planned.templates.get(own(name))
    const content = kernel === undefined ? own(name) : nameOfContent(contentOfKernel(kernel))
    const other = taken.get(content)
    const isFree = ![...names.values()].includes(content)
    const isSame = kernel !== undefined && (other === undefined || sameKernel(renamedKernel(kernel, content), other))
    names.set(name, isFree && isSame ? content : own(name))
  }
  return renamed(plan, (name) => names.get(name) ?? own(name))
}

function renamed(plan: PlanDecl, named: (name: string) => string): PlanDecl {
  return {
    ...plan,
    groups: plan.groups.map(({ kernel, occurrences }) => ({ kernel: named(kernel), occurrences })),
    ...(plan.library === undefined ? {} : { library: plan.library.map(named) }),
    ...(plan.tuned === undefined ? {} : { tuned: plan.tuned.map(named) }),
    ...(plan.schedules === undefined
      ? {}
      : { schedules: Object.fromEntries(Object.entries(plan.schedules).map(([name, schedule]) => [named(name), schedule])) }),
  }
}
