/** One plan out of those of a name. */
import type { GraphDecl } from '../../src/lang/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'

/** The plan over a graph. @throws if there is none */
export function planOf(plans: readonly PlanDecl[], graph: GraphDecl): PlanDecl {
  const found = plans.find((plan) => plan.graph === graph.name)
  if (found === undefined) throw new Error(`no plan of ${graph.name}`)
  return found
}
