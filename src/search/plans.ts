/** Applies every plan of a project to its graphs, and collects the derived kernels. Runs when CUDA is generated. */
import { concerning, type HeddleError, inTurn, usageError } from '../errors.js'
import { applyPlan } from '../fuse/apply.js'
import { type CheckedGroup, checkDerived, contentOf, type Verified } from '../fuse/check/derived.js'
import { withoutDefect } from '../fuse/defects.js'
import { commonConstants } from '../fuse/graph/constants.js'
import { refuseUngrouped } from '../fuse/graph/quantised_names.js'
import { checkGroups } from '../fuse/groups.js'
import { type PlannedKernel, sameKernel } from '../fuse/planned_kernel.js'
import { getOwn } from '../ir/get_own.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import { memoiseHashes, structuralHash } from '../ir/structural_hash.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import type { PlanDecl, Schedule } from '../lang/plan.js'
import { type Memo, noMemo } from '../memo.js'
import { withFewRows } from './by_rows.js'
import { type Applied, asKey, graphOf, opsOf, type ResolvedPlan, resolveAndApply, subjectOf } from './resolve.js'

export interface Planned {
  /** Derived row programs and templates of all plans. */
  readonly kernels: readonly Kernel[]
  readonly templates: readonly TemplateKernel[]
  /** Schedules that plans request, by kernel. */
  readonly schedules: Readonly<Record<string, Schedule>>
  /** The planned graphs: plan name, then graph name. */
  readonly graphs: Readonly<Record<string, Readonly<Record<string, Graph>>>>
  /** The plans with their groups, including those that were searched for. */
  readonly plans: readonly PlanDecl[]
  /** Groups that searches had to leave out, each with the reason. */
  readonly left: readonly HeddleError[]
}

/**
 * @param ops kernels of the ops the graphs use
 * @param layouts layouts that edges and int8 weights may have
 * @param verified groups whose kernels were checked against their bodies before; others are checked now
 * @param memo results of earlier runs for plans and groups, by structural hash
 * @throws one error of all plans that are refused: usage `plan.*` for a plan that cannot be applied; `plan.meaning` for one that would compute
 * something else; `plan.differ` when two plans derive different kernels of one name; `plan.byRows`
 */
export function planAll(
  plans: readonly PlanDecl[],
  graphs: Readonly<Record<string, { readonly graph: Graph }>>,
  ops: readonly Kernel[],
  layouts: readonly Layout[] = [],
  verified: Verified = new Set<string>(),
  memo: Memo = noMemo,
): Planned {
  const layoutsByName = new Map(layouts.map((layout) => [layout.name, layout]))
  const byName = new Map(ops.map((kernel) => [kernel.name, kernel]))
  const collected: Collected = { ops: byName, kernels: new Map(), schedules: {}, graphs: {} }
  // A plan sees only the ops that it depends on.
  const apply = (plan: PlanDecl): Applied => {
    const graph = graphOf(plan, graphs)
    const seen = opsOf(graph, byName)
    const follows = [asKey(plan), structuralHash(graph), structuralHash([...seen]), structuralHash(layouts)]
    const { result, keys } = memo.of('plan', follows, () => {
      const { groups, moved, ...result } = applyPlan(graph, plan, seen, layoutsByName, memo)
      refuseUngrouped(plan, result.graph)
      checkDerivedGroups([...groups, ...moved], seen, verified)
      return { result, keys: kernelsOf(result).map(structuralHash) }
    })
    // Kernels are compared, and their sources found, by their hashes: those of a cached plan are read with it.
    memoiseHashes(kernelsOf(result), keys)
    return result
  }
  const add = ({ plan, applied, refused }: ResolvedPlan): void => {
    checkGroups(plan, byName)
    if (refused !== undefined) throw refused
    collect(collected, plan, applied ?? apply(plan))
  }
  checkNames(plans)
  const resolved = resolveAndApply(plans, graphs, byName, layoutsByName, { apply, memo })
  inTurn(resolved.map((each) => () => concerning(subjectOf(each.plan), () => add(each))))
  const kernels = [...collected.kernels.values()]
  return {
    kernels: kernels.flatMap((kernel) => (isTemplate(kernel) ? [] : [kernel])),
    templates: kernels.flatMap((kernel) => (isTemplate(kernel) ? [kernel] : [])),
    schedules: collected.schedules,
    graphs: withFewRows(
      resolved.map(({ plan }) => plan),
      collected.graphs,
    ),
    plans: resolved.map(({ plan }) => plan),
    left: resolved.flatMap(({ left = [] }) => left),
  }
}

/** Results of all plans so far. */
interface Collected {
  readonly ops: ReadonlyMap<string, Kernel>
  readonly kernels: Map<string, PlannedKernel>
  readonly schedules: Record<string, Schedule>
  readonly graphs: Record<string, Record<string, Graph>>
}

/** Adds the result of a plan. @throws usage `plan.differ`, `plan.schedule` */
function collect({ ops, kernels, schedules, graphs }: Collected, plan: PlanDecl, result: Applied): void {
  for (const [name, kernel] of [...result.kernels, ...result.templates]) {
    const known = kernels.get(name)
    if (known !== undefined && structuralHash(known) === structuralHash(kernel)) continue
    if (ops.has(name) || (known !== undefined && !sameKernel(known, kernel))) {
      throw usageError('plan.differ', `plan ${plan.name} derives a kernel ${name} that differs from another of that name`, {
        hint: 'rename the group',
        about: { path: ['groups', name] },
      })
    }
    kernels.set(name, known === undefined ? kernel : commonConstants(known, kernel))
  }
  for (const [name, schedule] of Object.entries(plan.schedules ?? {})) {
    addSchedule(schedules, plan, name, schedule, result.kernels.has(name))
  }
  const graphsOfPlan = getOwn(graphs, plan.name) ?? {}
  graphs[plan.name] = { ...graphsOfPlan, [plan.graph]: result.graph }
}

const kernelsOf = ({ kernels, templates }: Applied): PlannedKernel[] => [...kernels.values(), ...templates.values()]

/** Checks groups against their bodies unless they passed before. @throws usage `plan.meaning` */
function checkDerivedGroups(groups: readonly CheckedGroup[], ops: ReadonlyMap<string, Kernel>, verified: Verified): void {
  for (const group of groups) {
    const content = contentOf(group, ops)
    if (verified.has(content)) continue
    const nodes = group.nodes.map(({ name }) => name)
    concerning({ path: ['groups', group.name], nodes }, () =>
      withoutDefect(`group ${group.name}`, () => checkDerived(group, ops)),
    )
    verified.add(content)
  }
}

/** @throws usage `plan.duplicate` for a second plan of one name for one graph */
function checkNames(plans: readonly PlanDecl[]): void {
  const seen = new Set<string>()
  inTurn(
    plans.map(({ name, graph, written }) => () => {
      const key = `${name} for ${graph}`
      if (seen.has(key))
        throw usageError('plan.duplicate', `two plans for ${graph} are called ${name}`, {
          hint: 'a plan is selected by its name: give each its own',
          about: { written },
        })
      seen.add(key)
    }),
  )
}

/** @throws usage `plan.schedule` for a kernel the plan does not derive as a row program, and for two schedules of one kernel */
function addSchedule(
  schedules: Record<string, Schedule>,
  plan: PlanDecl,
  name: string,
  schedule: Schedule,
  isDerived: boolean,
): void {
  if (!isDerived) {
    throw usageError('plan.schedule', `plan ${plan.name} has a schedule for ${name}, which is not a row program of its groups`, {
      hint: `groups: ${plan.groups.map(({ kernel }) => kernel).join(', ')}`,
      about: { path: ['schedules', name] },
    })
  }
  const known = getOwn(schedules, name)
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schedule)) {
    throw usageError('plan.schedule', `plan ${plan.name} has another schedule for ${name} than a plan before it`, {
      hint: 'give the groups different kernel names',
      about: { path: ['schedules', name] },
    })
  }
  schedules[name] = schedule
}
