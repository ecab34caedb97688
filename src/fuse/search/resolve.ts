/**
 * Turns plans whose groups are to be searched into plans with groups, before plans are applied. Groups of an automatic plan that
 * derive what a written plan derives too get that kernel's name, so the order in which specs list plans does not matter.
 */
import { concerning, type Subject, usageError } from '../../errors.js'
import type { Graph } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { PlanDecl } from '../../lang/plan.js'
import { applyPlan, type PlannedGraph, type PlannedKernel } from '../apply.js'
import type { LayoutsByName } from '../graph/edit.js'
import { searchPlan } from './auto.js'

type Graphs = Readonly<Record<string, { readonly graph: Graph }>>

/** What an error of a plan is about. */
export const subjectOf = ({ name, graph }: PlanDecl): Subject => ({ plan: name, graph })

/** The graph a plan is for. @throws usage `plan.graph` */
export function graphOf(plan: PlanDecl, graphs: Graphs): Graph {
  const found = Object.hasOwn(graphs, plan.graph) ? graphs[plan.graph] : undefined
  if (found === undefined) {
    throw usageError('plan.graph', `plan ${plan.name} is for ${plan.graph}, which no spec declares`, {
      hint: `export it with the others: graphs = { ${[...Object.keys(graphs), plan.graph].join(', ')} }`,
      about: subjectOf(plan),
    })
  }
  return found.graph
}

/** A plan with groups, and what it makes of its graph where that had to be known to find other plans. */
export interface ResolvedPlan {
  readonly plan: PlanDecl
  readonly applied?: PlannedGraph
}

/**
 * Written plans as they are, then automatic ones with the groups the search finds. An automatic plan is never worse, by the cost
 * model, than a written one of its graph that packs it alike.
 * @throws usage `plan.*` for a written plan that cannot be applied, `cost.device`, `graph.dim`
 */
export const resolvePlans = (...given: Parameters<typeof resolveAndApply>): readonly PlanDecl[] =>
  resolveAndApply(...given).map(({ plan }) => plan)

/** The same with what was learnt on the way: applying a plan is most of the work. */
export function resolveAndApply(
  plans: readonly PlanDecl[],
  graphs: Graphs,
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName = new Map(),
): readonly ResolvedPlan[] {
  const written = plans.filter(({ auto }) => auto === undefined)
  if (written.length === plans.length) return plans.map((plan) => ({ plan }))
  const kernels = new Map<string, PlannedKernel>()
  const learn = (plan: PlanDecl): ResolvedPlan => {
    const applied = concerning(subjectOf(plan), () => applyPlan(graphOf(plan, graphs), plan, ops, layouts))
    for (const [name, kernel] of [...applied.kernels, ...applied.templates]) kernels.set(name, kernel)
    return { plan, applied }
  }
  const resolved = written.map(learn)
  for (const plan of plans) {
    if (plan.auto === undefined) continue
    const { name, packed, stacked, auto } = plan
    const known = written.filter((other) => other.graph === plan.graph)
    const search = () => searchPlan(name, graphOf(plan, graphs), { ...auto, packed, stacked, ops, known, kernels })
    resolved.push(learn(concerning(subjectOf(plan), search)))
  }
  return resolved
}
