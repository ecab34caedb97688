/**
 * Times whole plans of a graph side by side: launches overlap, so the sum of groups is no measure of a plan. Kernels have the names under which
 * their groups were timed in the search, by content, so that most are compiled already; a plan that cannot be run leaves the others.
 */
import { createHash } from 'node:crypto'
import { applyPlan } from '../../fuse/apply.js'
import { type PlannedKernel, sameKernel } from '../../fuse/planned_kernel.js'
import type { Graph } from '../../ir/graph.js'
import { kernelName } from '../../ir/op_name.js'
import type { PlanDecl } from '../../lang/plan.js'
import { openMemo } from '../../memo.js'
import { demandedKernels } from '../../runtime/demand.js'
import { rowsIn } from '../../search/by_rows.js'
import { renamedKernel } from '../../search/kernel_names.js'
import { linkGraph } from '../../search/link.js'
import { contentOfKernel, nameOfContent } from '../../search/problem.js'
import { prepareText } from '../../verify/check/prepare.js'
import { samplesOf } from '../target/measure.js'
import { graphSubject } from '../target/subject.js'
import { fixedTypes, type SearchStage } from './clock.js'
import { type Failure, failureOf } from './failures.js'
import { presentIn } from './launch.js'

/** Samples in milliseconds of a plan, at each shape. */
export type Samples = readonly (readonly number[])[]

type Dims = Readonly<Record<string, number>>

/** A plan applied, with the kernels that it launches. */
interface Applied {
  readonly graph: Graph
  readonly kernels: readonly PlannedKernel[]
}

/** Names of kernels in a search, each for one kernel: by content, and numbered for those that differ in the names of their parameters. */
export class KernelNames {
  private readonly taken = new Map<string, PlannedKernel>()

  /** The kernel under its name in the search. */
  named(kernel: PlannedKernel): PlannedKernel {
    const content = nameOfContent(contentOfKernel(kernel))
    for (let twin = 1; ; twin++) {
      const named = renamedKernel(kernel, twin === 1 ? content : `${content}_${twin}`)
      const other = this.taken.get(named.name)
      if (other !== undefined && !sameKernel(named, other)) continue
      this.taken.set(named.name, named)
      return named
    }
  }
}

export interface Timing {
  readonly graph: Graph
  readonly shapes: readonly Dims[]
  readonly names: KernelNames
  /** Plans by their names, for those that give few rows to others. */
  readonly known?: readonly PlanDecl[]
  /** Timed replays; by default as many as of groups. */
  readonly repeats?: number
}

/** Times plans, interleaved, or says why one cannot be run. @throws as `failureOf` */
export async function timePlans(
  stage: SearchStage,
  plans: readonly PlanDecl[],
  { graph, shapes, names, known = [], repeats = stage.repeats }: Timing,
): Promise<readonly (Samples | Failure)[]> {
  const { root, device, layouts, tuning, dtype, signal, onProgress } = stage
  const applied = plans.map((plan) => orFailure(stage, () => byRowsOf(stage, graph, plan, names, known)))
  const kernels = new Map(
    applied.flatMap((each) => ('kernels' in each ? each.kernels.map((kernel) => [kernel.name, kernel]) : [])),
  )
  const graphs = Object.fromEntries(
    applied.flatMap((each, at) => ('kernels' in each ? [[`${at}`, { [graph.name]: each.graph }]] : [])),
  )
  const matmuls = tuning === undefined ? undefined : { ...tuning, entries: [] }
  const options = { dtypes: [dtype, ...fixedTypes], tuning: matmuls, alone: true }
  const text = await prepareText(root, { graphs, schedules: {} }, [...kernels.values()], options)
  try {
    const { manifest } = text.searched
    const library = demandedKernels(device, text.searched, { root, signal, onProgress })
    const ready = await Promise.all(
      applied.map(async (each) => {
        if (!('kernels' in each)) return each
        const own = new Set(each.kernels.map(({ name }) => name))
        const keys = manifest.kernels.filter(({ op }) => own.has(op)).map(({ key }) => key)
        return library.ensure(keys).then(
          () => undefined,
          (error: unknown) => failureOf(error, signal),
        )
      }),
    )
    const runnable = ready.flatMap((failure, at) => (failure === undefined ? [at] : []))
    const bench = { device, library, manifest, layouts, ceilings: undefined, dtype, repeats, signal }
    const subject = graphSubject(
      graph,
      manifest,
      runnable.map((at) => `${at}`),
    )
    const samples: number[][][] = plans.map(() => [])
    for (const dims of runnable.length === 0 ? [] : shapes) {
      const given = Object.fromEntries(
        subject.forms.flatMap((form) => ('graph' in form ? Object.entries(presentIn(form.graph, dims)) : [])),
      )
      const times = await samplesOf(bench, subject, given)
      for (const [place, at] of runnable.entries()) samples[at]?.push([...(times[place] ?? [])])
    }
    return ready.map((failure, at) => failure ?? samples[at] ?? [])
  } finally {
    await text.remove()
  }
}

function orFailure<T>({ signal }: SearchStage, action: () => T): T | Failure {
  try {
    return action()
  } catch (error) {
    return failureOf(error, signal)
  }
}

/** A plan applied, with those to which it gives few rows. */
function byRowsOf(stage: SearchStage, graph: Graph, plan: PlanDecl, names: KernelNames, known: readonly PlanDecl[]): Applied {
  const many = appliedOf(stage, graph, plan, names)
  const rows = rowsIn(many.graph)
  if (plan.byRows === undefined || rows === undefined) return many
  const few = plan.byRows.flatMap(({ most, plan: name }) => {
    const other = known.find((each) => each.name === name)
    return other === undefined ? [] : [{ most, plan: name, ...appliedOf(stage, graph, other, names) }]
  })
  return {
    graph: { ...many.graph, byRows: { rows, few: few.map(({ kernels: _, ...each }) => each) } },
    kernels: [...many.kernels, ...few.flatMap(({ kernels }) => kernels)],
  }
}

function appliedOf({ root, ops, byName }: SearchStage, graph: Graph, plan: PlanDecl, names: KernelNames): Applied {
  const planned = applyPlan(graph, withoutNames(plan), ops, byName, openMemo(root))
  const derived = new Map([...planned.kernels, ...planned.templates].map(([name, kernel]) => [name, names.named(kernel)]))
  const nodes = planned.graph.nodes.map((node) => {
    const kernel = node.kind === 'op' ? derived.get(node.op) : undefined
    return kernel === undefined || node.kind !== 'op' ? node : { ...node, op: kernel.name }
  })
  const own = planned.graph.nodes.flatMap((node) => {
    const kernel = node.kind === 'op' ? ops.get(node.op) : undefined
    return kernel === undefined ? [] : [{ ...kernel, name: kernelName(kernel.name) }]
  })
  return { graph: linkGraph({ ...planned.graph, nodes }), kernels: [...derived.values(), ...own] }
}

/** A plan with names of groups by their nodes, so that a group that several plans have is derived once. */
function withoutNames(plan: PlanDecl): PlanDecl {
  const named = new Map(
    plan.groups.map(({ kernel, occurrences }) => {
      const text = JSON.stringify([occurrences, plan.library?.includes(kernel), plan.stacked, plan.packed])
      return [kernel, `w${createHash('sha256').update(text).digest('hex').slice(0, 16)}`]
    }),
  )
  const nameOf = (name: string): string => named.get(name) ?? name
  return {
    ...plan,
    name: 'search',
    groups: plan.groups.map(({ kernel, occurrences }) => ({ kernel: nameOf(kernel), occurrences })),
    ...(plan.library === undefined ? {} : { library: plan.library.map(nameOf) }),
    ...(plan.tuned === undefined ? {} : { tuned: plan.tuned.map(nameOf) }),
    schedules: undefined,
  }
}
