/** Rules for the groups of a plan that need no graph. Callers that apply or explain a plan check them before groups are derived. */
import { usageError } from '../errors.js'
import { isKernelName } from '../ir/get_own.js'
import type { Kernel } from '../ir/kernel.js'
import type { PlanDecl } from '../lang/plan.js'

/**
 * Checks that groups have valid kernel names, which appear in generated source, and contain nodes.
 * @throws usage `plan.name`; `plan.differ` for the name of an op; `plan.empty`; `plan.overlap` for a node that a group names twice
 */
export function checkGroups({ name, groups, library = [] }: PlanDecl, ops: ReadonlyMap<string, Kernel>): void {
  for (const { kernel, occurrences } of groups) {
    const about = { path: ['groups', kernel] }
    if (!isKernelName(kernel))
      throw usageError('plan.name', `plan ${name}: group name ${JSON.stringify(kernel)} is not allowed`, {
        hint: 'write it like bias_residual',
        about,
      })
    if (ops.has(kernel) && !library.includes(kernel))
      throw usageError('plan.differ', `plan ${name}: group ${kernel} has the name of an op`, {
        hint: 'rename the group',
        about,
      })
    if (occurrences.some((nodes) => nodes.length === 0))
      throw usageError('plan.empty', `plan ${name}: group ${kernel} holds no node`, {
        hint: 'name the nodes that become one kernel, or leave the group out',
        about,
      })
    const twice = occurrences.flatMap((nodes) => nodes.filter((node, at) => nodes.indexOf(node) !== at))[0]
    if (twice !== undefined)
      throw usageError('plan.overlap', `plan ${name}: group ${kernel} names node ${twice} twice`, {
        hint: 'a node is computed once',
        about: { path: ['groups', kernel, twice] },
      })
  }
}
