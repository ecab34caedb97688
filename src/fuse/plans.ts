/** Applies every plan of a project to the graphs it is for, and collects the kernels they derive. Runs when CUDA is generated. */
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import type { TemplateKernel } from '../ir/template.js'
import type { PlanDecl } from '../lang/plan.js'
import { applyPlan, type PlannedKernel, sameKernel } from './apply.js'
import { graphOf, resolvePlans } from './resolve.js'

export interface Planned {
  /** Derived row programs and templates of all plans. */
  readonly kernels: readonly Kernel[]
  readonly templates: readonly TemplateKernel[]
  /** The planned graphs: plan name, then graph name. */
  readonly graphs: Readonly<Record<string, Readonly<Record<string, Graph>>>>
}

/**
 * @param ops kernels of the ops the graphs use
 * @param layouts layouts that edges and int8 weights may have
 * @throws usage `plan.*` for a plan that cannot be applied; `plan.differ` when two plans derive different kernels of one name
 */
export function planAll(
  plans: readonly PlanDecl[],
  graphs: Readonly<Record<string, { readonly graph: Graph }>>,
  ops: readonly Kernel[],
  layouts: readonly Layout[] = [],
): Planned {
  const layoutsByName = new Map(layouts.map((layout) => [layout.name, layout]))
  const byName = new Map(ops.map((kernel) => [kernel.name, kernel]))
  const made = new Map<string, PlannedKernel>()
  const planned: Record<string, Record<string, Graph>> = {}
  for (const plan of resolvePlans(plans, graphs, byName, layoutsByName)) {
    const result = applyPlan(graphOf(plan, graphs), plan, byName, layoutsByName)
    for (const [name, kernel] of [...result.kernels, ...result.templates]) {
      const known = made.get(name)
      if (byName.has(name) || (known !== undefined && !sameKernel(known, kernel))) {
        throw usageError('plan.differ', `plan ${plan.name} derives a kernel ${name} that differs from another of that name`, {
          hint: 'rename the group',
        })
      }
      made.set(name, known ?? kernel)
    }
    const graphsOfPlan = planned[plan.name] ?? {}
    planned[plan.name] = { ...graphsOfPlan, [plan.graph]: result.graph }
  }
  const kernels = [...made.values()]
  return {
    kernels: kernels.flatMap((kernel) => ('kind' in kernel ? [] : [kernel])),
    templates: kernels.flatMap((kernel) => ('kind' in kernel ? [kernel] : [])),
    graphs: planned,
  }
}
