/**
 * Finds a plan by the cost model: compares the groups found by merging, groups over stacked nodes, and known plans. Runs when CUDA is generated,
 * for plans that a spec declares with `autoPlan`.
 */

import { costDevice, leastGain, type PriceType } from '../cost/device.js'
import { type Pricing, priceDims } from '../cost/step.js'
import { HeddleError } from '../errors.js'
import { applyPlan } from '../fuse/apply.js'
import type { LayoutsByName } from '../fuse/graph/edit.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { PlanDecl } from '../lang/plan.js'
import { Candidates, type Defect } from './candidates.js'
import { type KnownKernels, nameGroups } from './kernel_names.js'
import { type Group, mergedGroups, total } from './merges.js'
import { stacksOf } from './stacks.js'

export interface SearchOptions {
  /** A device of the cost model. */
  readonly device: string
  /** Kernels of the ops the graph uses, by name. */
  readonly ops: ReadonlyMap<string, Kernel>
  /** Dimensions for which plans are priced, besides or instead of the graph's typical ones. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** Default f16. */
  readonly dtype?: PriceType | undefined
  readonly packed?: PlanDecl['packed']
  readonly stacked?: PlanDecl['stacked']
  /** Plans the result is never worse than: those of this graph with the same packing, in floats, without groups of the library. */
  readonly known?: readonly PlanDecl[] | undefined
  /** Layouts that ops of the graph store and read. */
  readonly layouts?: LayoutsByName | undefined
  /** Kernels whose names are reused by groups that derive the same. */
  readonly kernels?: KnownKernels | undefined
}

/**
 * The plan that the search finds, or the known plan that the model prefers to it, under the search's name.
 * @throws usage `cost.device`, `graph.dim`, and the errors of packing and stacking
 */
export const searchPlan = (name: string, graph: Graph, options: SearchOptions): PlanDecl => findPlan(name, graph, options).plan

/** A plan that was found, and the groups that a defect kept out of it. */
export interface Found {
  readonly plan: PlanDecl
  readonly defects: readonly Defect[]
}

/** Like `searchPlan`, with the groups that could not be tried. @throws as `searchPlan` */
export function findPlan(name: string, graph: Graph, options: SearchOptions): Found {
  const { ops, packed, stacked, known = [], layouts } = options
  const dims = priceDims(graph, packed, options.dims)
  const pricing = { device: costDevice(options.device), dims, dtype: options.dtype ?? 'f16' }
  const preparing = (plan: Pick<PlanDecl, 'stacked'>): Candidates =>
    new Candidates(graph, { name, graph: graph.name, packed, stacked: plan.stacked, groups: [] }, ops, pricing, layouts)
  const first = preparing({ stacked })
  let best: Priced = merged(first, stacked)
  const defects = [...first.defects]
  for (const stacks of (stacked ?? []).length > 0 ? [] : stacksOf(graph)) {
    const other = orUndefined(() => merged(preparing({ stacked: stacks }), stacks))
    defects.push(...(other?.candidates.defects ?? []))
    // At equal price a stack wins: on an H200 it is 1 to 4 % faster where bytes alone are priced, and 5 to 30 % with the ops after it.
    const least = best.stacked === stacked ? -leastGain : leastGain
    if (other !== undefined && other.cost < best.cost - least) best = other
  }
  for (const plan of known) {
    // A library's matmul has the price of a generated one: the model prefers neither.
    if (plan.quantised !== undefined || plan.library !== undefined || plan.graph !== graph.name) continue
    if (JSON.stringify(plan.packed) !== JSON.stringify(packed)) continue
    const candidates = preparing(plan)
    const groups = planGroups(candidates, plan).map(({ group }) => group)
    const cost = total(groups)
    // At equal price a written plan wins: its kernels exist already.
    if (cost < best.cost + leastGain) best = { candidates, stacked: plan.stacked, groups, cost, written: plan.groups }
  }
  const { written, ...found } = improved(best)
  const groups = written ?? nameGroups(found.candidates, found.groups, options.kernels)
  return { plan: { name, graph: graph.name, packed, stacked: found.stacked, groups }, defects }
}

/** Groups with their price, and the stacks that a plan needs for them. */
interface Priced {
  readonly candidates: Candidates
  readonly stacked: PlanDecl['stacked']
  readonly groups: readonly Group[]
  readonly cost: number
  /** Groups in the form in which a plan declares them. */
  readonly written?: PlanDecl['groups']
}

function merged(candidates: Candidates, stacked: PlanDecl['stacked'], from?: readonly Group[]): Priced {
  const groups = mergedGroups(candidates, from)
  return { candidates, stacked, groups, cost: total(groups) }
}

/** Groups of a written plan if no merge gains; otherwise the groups that the search derives from them. */
function improved(best: Priced): Priced {
  if (best.written === undefined) return best
  const further = merged(best.candidates, best.stacked, best.groups)
  return further.cost < best.cost - leastGain ? further : best
}

/** The result of an action; undefined if a plan is refused. */
function orUndefined<T>(action: () => T): T | undefined {
  try {
    return action()
  } catch (error) {
    if (error instanceof HeddleError && error.code.startsWith('plan.')) return undefined
    throw error
  }
}

/** Predicted seconds of a graph under a plan. @throws usage `plan.*` for a plan that cannot be applied */
export const planSeconds = (
  graph: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  pricing: Pricing,
  layouts?: LayoutsByName,
): number =>
  planGroups(new Candidates(graph, plan, ops, pricing, layouts), plan).reduce((sum, { group }) => sum + group.cost.seconds, 0)

/** The steps of a plan: its groups, and the nodes that it leaves alone, in graph order of their last nodes. */
export function planGroups(
  candidates: Candidates,
  plan: PlanDecl,
): readonly { readonly group: Group; readonly kernel: string | undefined }[] {
  const fused = plan.groups.flatMap(({ kernel, occurrences }) =>
    occurrences.map((names) => {
      const library = plan.library?.includes(kernel) === true ? [kernel] : []
      const group = library.length > 0 ? candidates.library(names) : candidates.fused(names)
      if (group.kind === 'refused') {
        // Candidates have a working name: the refusal has to name the group itself.
        const alone = { name: plan.name, graph: plan.graph, library, groups: [{ kernel, occurrences: [names] }] }
        applyPlan(candidates.graph, alone, candidates.ops, candidates.layouts)
        throw group.error
      }
      return { group, kernel }
    }),
  )
  const taken = new Set(fused.flatMap(({ group }) => group.names))
  const alone = candidates.nodes
    .filter(({ name }) => !taken.has(name))
    .map((node) => ({ group: candidates.alone(node), kernel: node.kind === 'op' ? node.op : undefined }))
  const order = new Map(candidates.nodes.map(({ name }, i) => [name, i]))
  const last = ({ names }: Group) => order.get(names.at(-1) ?? '') ?? 0
  return [...fused, ...alone].sort((a, b) => last(a.group) - last(b.group))
}
