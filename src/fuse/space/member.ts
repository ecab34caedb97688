/** Type of a group's members, shared by the modules of this folder. */
import type { NodeOf } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'

/** A node of the group with the kernel of its op. */
export interface Member {
  readonly node: NodeOf<'op'>
  readonly kernel: Kernel
}
