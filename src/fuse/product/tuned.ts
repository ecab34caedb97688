/**
 * Matmuls whose form measurements choose. The node remains the library's matmul and names the kernel that computes the same. A run uses that
 * kernel at the sizes for which a tuning file states that it was faster.
 */
import { usageError } from '../../errors.js'
import type { GraphNode, NodeOf } from '../../ir/graph.js'
import type { PlanDecl } from '../../lang/plan.js'

/** @throws usage `plan.tuned` for a name that is not a group of the plan, or whose groups are the library's alone */
export function checkTuned({ name, library = [], tuned = [], groups }: PlanDecl): void {
  const known = groups.map(({ kernel }) => kernel).filter((group) => !library.includes(group))
  const other = tuned.find((group) => !known.includes(group))
  if (other === undefined) return
  throw usageError('plan.tuned', `plan ${name}: ${other} is to be tuned, but is not a group with a generated kernel`, {
    hint: `groups: ${known.join(', ')}`,
    about: { path: ['tuned', other] },
  })
}

/** The only node of a tuned group. @throws usage `plan.tuned` unless it is a matmul */
export function bareMatmul(group: string, nodes: readonly GraphNode[]): NodeOf<'matmul'> {
  const [first, ...others] = nodes
  if (first?.kind === 'matmul' && others.length === 0) return first
  const names = nodes.map(({ name }) => name)
  throw usageError('plan.tuned', `group ${group}: measurements choose the form of a matmul by itself, got ${names.join(', ')}`, {
    hint: `take ${group} out of \`tuned\`, or give the matmul a group of its own`,
  })
}
