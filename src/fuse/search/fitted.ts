/**
 * A found plan as it can be applied. A search prices groups one by one; all of them together, and what they compute, are checked against the
 * graph afterwards. A group that fails there is left out, since no search may end what runs it: its nodes stay the ops they are.
 */
import { HeddleError, usageError } from '../../errors.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { Defect } from './candidates.js'

/** A plan, what it makes of its graph, and why groups were left out of it. */
export interface Fitted<A> {
  readonly plan: PlanDecl
  readonly applied: A
  readonly left: readonly HeddleError[]
}

/**
 * @param apply what a plan makes of its graph
 * @throws what `apply` throws for the plan without any group
 */
export function fitted<A>(plan: PlanDecl, apply: (plan: PlanDecl) => A): Fitted<A> {
  try {
    return { plan, applied: apply(plan), left: [] }
  } catch (error) {
    if (!(error instanceof HeddleError) || plan.groups.length === 0) throw error
    const [, failed] = error.about?.path ?? []
    const isBlamed = plan.groups.some(({ kernel }) => kernel === failed)
    // An error that blames none of the groups is of all of them together.
    const out = isBlamed ? plan.groups.filter(({ kernel }) => kernel === failed) : plan.groups
    const rest = fitted({ ...plan, groups: plan.groups.filter((group) => !out.includes(group)) }, apply)
    const nodes = out.flatMap(({ occurrences }) => occurrences.flat())
    return { ...rest, left: [leftOut(plan, { nodes, message: error.message }), ...rest.left] }
  }
}

/** The note of a group that a found plan does without. */
export const leftOut = ({ name, graph }: PlanDecl, { nodes, message }: Defect): HeddleError =>
  usageError(
    'plan.defect',
    `plan ${name} of ${graph} does without a kernel of ${nodes.join(', ') || 'several nodes'}: ${message}`,
    {
      hint: 'report it with the spec: the plan computes the same, in more launches',
      about: { plan: name, graph, nodes },
    },
  )
