/**
 * Explains a plan as data: its steps with the predictions of the cost model, and for every edge between two steps the reason why they are not
 * one. Also compares two plans. Printed by `heddle plan`.
 */

import { leastGain } from '../cost/device.js'
import type { LaunchCost } from '../cost/launch.js'
import type { Pricing } from '../cost/step.js'
import { concerning } from '../errors.js'
import { applyPlan } from '../fuse/apply.js'
import type { LayoutsByName } from '../fuse/graph/edit.js'
import { checkGroups } from '../fuse/groups.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { isTemplate } from '../ir/template.js'
import type { PlanDecl } from '../lang/plan.js'
import { planGroups } from './auto.js'
import { Candidates } from './candidates.js'
import { cycleOf } from './merges.js'
import { subjectOf } from './resolve.js'

export interface PlanStep {
  readonly kind: 'row program' | 'matmul' | 'attention' | 'decode attention' | 'library matmul' | 'grouped matmul'
  /** The graph's nodes that the step computes, in its order. */
  readonly nodes: readonly string[]
  /** Nodes of the graph as declared that it computes: those of a stack instead of the stack, without the parts taken from it. */
  readonly covers: readonly string[]
  /** Name of the generated kernel; of a library matmul, its group or its node. */
  readonly kernel: string
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly flops: number
  /** True if its rows exceed the registers, so that every pass reads them. */
  readonly rereads: boolean
  readonly launches: number
  readonly microseconds: number
  /** Launches of a row kernel, in order of execution, with their prices. */
  readonly parts: readonly LaunchCost[]
}

/** A value that one step computes and another reads. */
export interface PlanEdge {
  readonly producer: string
  readonly consumer: string
  /** True if the two steps could be one kernel. */
  readonly legal: boolean
  /** Predicted microseconds that merging them saves; undefined if it is not legal. */
  readonly gain: number | undefined
  readonly reason: string
}

export interface PlanTotals {
  /** Generated kernels and library matmuls that a run of the graph launches. */
  readonly kernels: number
  readonly matmuls: number
  readonly launches: number
  readonly bytes: number
  readonly flops: number
  readonly microseconds: number
}

export interface PlanReport {
  readonly plan: string
  readonly graph: string
  /** Plan that runs in its place at this number of rows, which the report is about. */
  readonly instead?: string | undefined
  readonly steps: readonly PlanStep[]
  readonly totals: PlanTotals
  readonly edges: readonly PlanEdge[]
}

const micro = 1e6

/** @throws usage `plan.*` for a plan that `gen` refuses, `graph.dim` for dimensions `pricing` lacks */
export function explainPlan(
  graph: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  pricing: Pricing,
  layouts: LayoutsByName = new Map(),
): PlanReport {
  return concerning(subjectOf(plan), () => {
    checkGroups(plan, ops)
    // Groups are priced one by one; applying the plan checks them together.
    applyPlan(graph, plan, ops, layouts)
    return report(new Candidates(graph, plan, ops, pricing, layouts), plan)
  })
}

function report(candidates: Candidates, plan: PlanDecl): PlanReport {
  const steps = planGroups(candidates, plan).map(({ group: { names, kernel, cost }, kernel: name }): PlanStep => {
    const { bytesRead, bytesWritten, flops, rereads, launches, seconds, parts } = cost
    const ofRows = parts.some(({ program }) => program === 'matmul') ? 'grouped matmul' : 'row program'
    const kind = kernel === undefined ? 'library matmul' : isTemplate(kernel) ? kernel.kind : ofRows
    return {
      kind,
      nodes: names,
      covers: covered(plan, names),
      kernel: name ?? names.join(),
      bytesRead,
      bytesWritten,
      flops,
      rereads,
      launches,
      microseconds: seconds * micro,
      parts,
    }
  })
  return { plan: plan.name, graph: plan.graph, steps, totals: totalsOf(steps), edges: edgesOf(candidates, steps) }
}

function covered({ stacked = [] }: PlanDecl, names: readonly string[]): readonly string[] {
  const parts = stacked.flatMap(({ nodes }) => nodes)
  return names.flatMap((name) => stacked.find((stack) => stack.name === name)?.nodes ?? (parts.includes(name) ? [] : [name]))
}

function totalsOf(steps: readonly PlanStep[]): PlanTotals {
  const sum = (of: (step: PlanStep) => number) => steps.reduce((total, step) => total + of(step), 0)
  const matmuls = steps.filter(({ kind }) => kind === 'library matmul').length
  return {
    kernels: steps.length - matmuls,
    matmuls,
    launches: sum(({ launches }) => launches),
    bytes: sum(({ bytesRead, bytesWritten }) => bytesRead + bytesWritten),
    flops: sum(({ flops }) => flops),
    microseconds: sum(({ microseconds }) => microseconds),
  }
}

function edgesOf(candidates: Candidates, steps: readonly PlanStep[]): PlanEdge[] {
  const verdicts = new Map<string, Verdict>()
  const stepOf = (name: string) => steps.find(({ nodes }) => nodes.includes(name))
  return candidates.nodes.flatMap((consumer) =>
    candidates.nodes.flatMap((producer): PlanEdge[] => {
      const [from, to] = [stepOf(producer.name), stepOf(consumer.name)]
      if (from === undefined || to === undefined || from === to || !candidates.feeds(producer, consumer)) return []
      const key = `${from.nodes.join()} ${to.nodes.join()}`
      const verdict = verdicts.get(key) ?? judge(candidates, steps, from, to)
      verdicts.set(key, verdict)
      return [{ producer: producer.name, consumer: consumer.name, ...verdict }]
    }),
  )
}

type Verdict = Pick<PlanEdge, 'legal' | 'gain' | 'reason'>

/** Decides whether two steps could be one, by deriving them together. */
function judge(candidates: Candidates, steps: readonly PlanStep[], from: PlanStep, to: PlanStep): Verdict {
  const merged = candidates.fused([...from.nodes, ...to.nodes])
  const groups = steps.flatMap((step) => (step === from ? [merged.names] : step === to ? [] : [step.nodes]))
  const refusal = merged.kind === 'refused' ? merged.error : cycleOf(candidates, groups)
  if (merged.kind === 'refused' || refusal !== undefined) {
    return { legal: false, gain: undefined, reason: (refusal?.message ?? '').replace(/^group \w+: /, '') }
  }
  const gain = from.microseconds + to.microseconds - merged.cost.seconds * micro
  const reason = gain > leastGain * micro ? 'legal, the plan leaves it' : 'legal, the model predicts no gain'
  return { legal: true, gain, reason }
}

/** Steps of two plans that compute some of the same nodes, but not in the same groups. */
export interface PlanDifference {
  readonly a: readonly PlanStep[]
  readonly b: readonly PlanStep[]
}

export interface PlanDiff {
  readonly a: PlanReport
  readonly b: PlanReport
  readonly differences: readonly PlanDifference[]
}

/** Differences between two reports of one graph: the smallest sets of steps of each that cover the same nodes. */
export function diffReports(a: PlanReport, b: PlanReport): PlanDiff {
  const open = new Set([...a.steps, ...b.steps])
  const found: PlanDifference[] = []
  for (const start of [...a.steps, ...b.steps]) {
    if (!open.has(start)) continue
    const together = new Set([start])
    for (const step of together)
      for (const other of open) if (other.covers.some((node) => step.covers.includes(node))) together.add(other)
    for (const step of together) open.delete(step)
    const difference = { a: a.steps.filter((step) => together.has(step)), b: b.steps.filter((step) => together.has(step)) }
    if (!same(difference)) found.push(difference)
  }
  return { a, b, differences: found }
}

function same({ a, b }: PlanDifference): boolean {
  const [one, other] = [a[0], b[0]]
  return (
    a.length === 1 &&
    b.length === 1 &&
    one?.kind === other?.kind &&
    [...(one?.nodes ?? [])].sort().join() === [...(other?.nodes ?? [])].sort().join()
  )
}
