/**
 * Replaces automatic plans by plans with groups, before plans are applied. A group of an automatic plan that derives a kernel of a written plan
 * gets that kernel's name, so the order in which specs list plans does not matter.
 */
import { concerning, HeddleError, type Subject, together, usageError } from '../errors.js'
import { applyPlan, type PlannedGraph } from '../fuse/apply.js'
import { withoutDefect } from '../fuse/defects.js'
import type { LayoutsByName } from '../fuse/graph/edit.js'
import type { PlannedKernel } from '../fuse/planned_kernel.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { isStandard } from '../ir/op_name.js'
import { structuralHash } from '../ir/structural_hash.js'
import type { PlanDecl } from '../lang/plan.js'
import { type Memo, noMemo } from '../memo.js'
import { type Found, findPlan } from './auto.js'
import { type Fitted, fitted, leftOut } from './fitted.js'

type Graphs = Readonly<Record<string, { readonly graph: Graph }>>

/** Subject of a plan's errors. */
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

/** The result of applying a plan to its graph, without the intermediate groups, which only their check needs. */
export type Applied = Omit<PlannedGraph, 'groups' | 'moved'>

/** A plan with groups, and its result where that was needed to find other plans. */
export interface ResolvedPlan {
  readonly plan: PlanDecl
  readonly applied?: Applied
  /** Groups that a search had to leave out, each with the reason: for a note. */
  readonly left?: readonly HeddleError[]
  /** Reason why it cannot be applied, or its groups cannot be found, where that was needed. */
  readonly refused?: HeddleError
}

/**
 * Written plans as they are, then automatic ones with the groups that the search finds. An automatic plan is never worse, by the cost model, than
 * a written one of its graph with the same packing.
 * @throws usage `plan.*` for written plans that cannot be applied, `cost.device`, `graph.dim`: for all of them at once
 */
export function resolvePlans(...given: Parameters<typeof resolveAndApply>): readonly PlanDecl[] {
  const resolved = resolveAndApply(...given)
  const refused = resolved.flatMap((each) => each.refused ?? [])
  if (refused.length > 0) throw together(refused)
  return resolved.map(({ plan }) => plan)
}

interface Resolving {
  /** Applies a plan; `applyPlan` by default. */
  readonly apply?: (plan: PlanDecl) => Applied
  /** Cache of earlier searches. */
  readonly memo?: Memo
}

/** Resolves plans, with intermediate results: applying a plan is most of the work. A refused plan has the reason. */
export function resolveAndApply(
  plans: readonly PlanDecl[],
  graphs: Graphs,
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName = new Map(),
  { apply = (plan) => applyPlan(graphOf(plan, graphs), plan, ops, layouts), memo = noMemo }: Resolving = {},
): readonly ResolvedPlan[] {
  const written = plans.filter(({ auto }) => auto === undefined)
  if (written.length === plans.length) return plans.map((plan) => ({ plan }))
  const kernels = new Map<string, PlannedKernel>()
  /** Makes and applies a plan. A refused plan does not stop the others. */
  const learn = (plan: PlanDecl, become: () => Fitted<Applied>): ResolvedPlan => {
    try {
      return concerning(subjectOf(plan), () => {
        const { applied, ...rest } = become()
        for (const [name, kernel] of [...applied.kernels, ...applied.templates]) kernels.set(name, kernel)
        return { applied, ...rest }
      })
    } catch (error) {
      if (!(error instanceof HeddleError)) throw error
      return { plan, refused: error }
    }
  }
  const resolved = written.map((plan) => learn(plan, () => ({ plan, applied: apply(plan), left: [] })))
  const usable = resolved.flatMap(({ plan, refused }) => (refused === undefined ? [plan] : []))
  const searched = (plan: PlanDecl, auto: NonNullable<PlanDecl['auto']>): Found => {
    const { name, packed, stacked } = plan
    const known = usable.filter((other) => other.graph === plan.graph)
    const graph = graphOf(plan, graphs)
    // New names avoid those that are taken, so all existing kernels are part of the key.
    const follows = [asKey(plan), structuralHash(graph), structuralHash([...opsOf(graph, ops)]), structuralHash([...ops.keys()])]
    const others = [...known.map(asKey), structuralHash([...kernels]), structuralHash([...layouts])]
    return memo.of('search', [...follows, ...others], () =>
      findPlan(name, graph, { ...auto, packed, stacked, ops, layouts, known, kernels }),
    )
  }
  for (const plan of plans) {
    const { auto } = plan
    if (auto === undefined) continue
    const found = learn(plan, () => {
      const { plan: made, defects } = orBare(plan, () => searched(plan, auto))
      const { left, ...rest } = fitted(made, apply)
      return { ...rest, left: [...defects.map((defect) => leftOut(plan, defect)), ...left] }
    })
    resolved.push(found)
  }
  return resolved
}

/** The result of a search; a plan without groups if it ends in a defect. */
function orBare(plan: PlanDecl, search: () => Found): Found {
  try {
    return withoutDefect(`the search for plan ${plan.name}`, search)
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'plan.defect') throw error
    const { auto: _, ...bare } = plan
    return { plan: bare, defects: [{ nodes: [], message: error.message }] }
  }
}

/** Hash of a plan without its source location. Layouts count by their names; their definitions are hashed separately. */
export const asKey = ({ written: _, layouts: __, ...plan }: PlanDecl): string => structuralHash(plan)

/** Kernels that plans of a graph may use: those of its ops, and those of the library, which padding and int8 bring in. */
export const opsOf = (graph: Graph, ops: ReadonlyMap<string, Kernel>): ReadonlyMap<string, Kernel> => {
  const used = new Set(graph.nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : [])))
  return new Map([...ops].filter(([name]) => used.has(name) || isStandard(name)))
}
