/** Groups with a member that updates its input in place: the derived kernel must consist of this update alone. */
import type { Kernel } from '../../ir/kernel.js'
import { isUpdating, placeUpdates, UpdateConflict } from '../../ir/update.js'
import { verifyKernel } from '../../ir/verify.js'
import { illegal, type Member } from '../space/space.js'

/**
 * Refuses a group that has a member which replaces elements in place, and does more than that.
 * @throws usage `plan.illegal` naming that member, another one and the reason
 */
export function checkUpdates(kernel: Kernel, group: string, members: readonly Member[]): void {
  const updating = members.find((member) => isUpdating(member.kernel))
  if (updating === undefined) return
  const other = members.find((member) => member !== updating) ?? updating
  try {
    verifyKernel(placeUpdates(kernel), `placing updates of ${group}`)
  } catch (error) {
    if (!(error instanceof UpdateConflict)) throw error
    throw illegal(group, updating.node.name, other.node.name, `${error.tensor} cannot be replaced in place: ${error.message}`)
  }
}
