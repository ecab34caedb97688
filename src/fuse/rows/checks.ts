/**
 * Checks of a derived kernel that name the nodes of its group: every extent is given by a tensor, and no value is too large. Run before the kernel
 * is verified, which would report a defect.
 */
import { usageError } from '../../errors.js'
import type { Kernel } from '../../ir/kernel.js'
import { oversizeKernel } from '../../ir/size.js'
import { visitKernel } from '../../ir/walk.js'
import { illegal, type Member } from '../space/space.js'

/** @throws usage `plan.illegal` for an extent that no tensor has, `plan.size` for a value that is too large */
export function checkDerivedKernel(kernel: Kernel, group: string, members: readonly Member[]): void {
  const lost = lostExtent(kernel)
  if (lost !== undefined) {
    const [first = '', last = ''] = [members[0]?.node.name, members.at(-1)?.node.name]
    throw illegal(group, first, last, `extent ${lost} is of the result of ${first}, and no tensor of one kernel would have it`)
  }
  const large = oversizeKernel(kernel)
  if (large === undefined) return
  const names = members.map(({ node }) => node.name).join(', ')
  throw usageError('plan.size', `group ${group}: a value of ${names} is too large: ${large}`, { hint: 'make two groups of it' })
}

/** A loop extent of a body that no tensor has: the tensor with the extent was inlined, so a launch cannot determine it. */
function lostExtent(kernel: Kernel): string | undefined {
  const used = new Set<string>()
  visitKernel(kernel, (expr) => {
    if (expr.kind === 'dim') used.add(expr.name)
  })
  return [...used].find((name) => !kernel.dims.includes(name))
}
