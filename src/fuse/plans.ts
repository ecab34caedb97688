/** Applies every plan of a project to the graphs it is for, and collects the kernels they derive. Runs when CUDA is generated. */
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { PlanDecl } from '../lang/plan.js'
import { applyPlan, sameKernel } from './apply.js'

export interface Planned {
  /** Derived kernels of all plans. */
  readonly kernels: readonly Kernel[]
  /** The planned graphs: plan name, then graph name. */
  readonly graphs: Readonly<Record<string, Readonly<Record<string, Graph>>>>
}

/**
 * @param ops kernels of the ops the graphs use
 * @throws usage `plan.*` for a plan that cannot be applied; `plan.differ` when two plans derive different kernels of one name
 */
export function planAll(
  plans: readonly PlanDecl[],
  graphs: Readonly<Record<string, { readonly graph: Graph }>>,
  ops: readonly Kernel[],
): Planned {
  const byName = new Map(ops.map((kernel) => [kernel.name, kernel]))
  const kernels = new Map<string, Kernel>()
  const planned: Record<string, Record<string, Graph>> = {}
  for (const plan of plans) {
    const found = graphs[plan.graph]
    if (found === undefined) throw usageError('plan.graph', `plan ${plan.name} is for ${plan.graph}, which no spec declares`)
    const result = applyPlan(found.graph, plan, byName)
    for (const [name, kernel] of result.kernels) {
      const known = kernels.get(name)
      if (byName.has(name) || (known !== undefined && !sameKernel(known, kernel))) {
        throw usageError('plan.differ', `plan ${plan.name} derives a kernel ${name} that differs from another of that name`, {
          hint: 'rename the group',
        })
      }
      kernels.set(name, known ?? kernel)
    }
    const graphsOfPlan = planned[plan.name] ?? {}
    planned[plan.name] = { ...graphsOfPlan, [plan.graph]: result.graph }
  }
  return { kernels: [...kernels.values()], graphs: planned }
}
