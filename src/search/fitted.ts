/**
 * Makes a found plan applicable. A search prices groups one by one. All of them together, and their results, are checked against the graph
 * afterwards. A group that fails there is left out, so that a search never ends the command that runs it: its nodes remain ops of their own.
 */
import { HeddleError, usageError } from '../errors.js'
import type { PlanDecl } from '../lang/plan.js'
import type { Defect } from './candidates.js'

/** A plan, the result of applying it to its graph, and the reasons for groups that were left out. */
export interface Fitted<A> {
  readonly plan: PlanDecl
  readonly applied: A
  readonly left: readonly HeddleError[]
}

/**
 * @param apply applies a plan to its graph
 * @throws errors of `apply` for the plan without any group
 */
export function fitted<A>(plan: PlanDecl, apply: (plan: PlanDecl) => A): Fitted<A> {
  try {
    return { plan, applied: apply(plan), left: [] }
  } catch (error) {
    if (!(error instanceof HeddleError) || plan.groups.length === 0) throw error
    const [, failed] = error.about?.path ?? []
    const isBlamed = plan.groups.some(({ kernel }) => kernel === failed)
    // An error that names none of the groups concerns all of them together.
    const out = isBlamed ? plan.groups.filter(({ kernel }) => kernel === failed) : plan.groups
    const rest = fitted({ ...plan, groups: plan.groups.filter((group) => !out.includes(group)) }, apply)
    const nodes = out.flatMap(({ occurrences }) => occurrences.flat())
    return { ...rest, left: [leftOut(plan, { nodes, message: error.message }), ...rest.left] }
  }
}

/** Note on a group that was left out of a found plan. */
export const leftOut = ({ name, graph }: PlanDecl, { nodes, message }: Defect): HeddleError =>
  usageError(
    'plan.defect',
    `plan ${name} of ${graph} does without a kernel of ${nodes.join(', ') || 'several nodes'}: ${message}`,
    {
      hint: 'report it with the spec: the plan computes the same, in more launches',
      about: { plan: name, graph, nodes },
    },
  )
