/** Names that a kernel has: a pass that introduces one picks another. */
import type { Kernel } from '../../ir/kernel.js'
import { introducedNames, stmtExprs, visit } from '../../ir/walk.js'

/** Names of dimensions, tensors, attributes, axes and statements, and indices of reductions inside of an element. */
export function takenNames(...kernels: readonly Kernel[]): Set<string> {
  const taken = new Set<string>()
  for (const { dims, tensors, attrs, rows, body } of kernels) {
    for (const dim of dims) taken.add(dim)
    for (const { name } of [...tensors, ...attrs]) taken.add(name)
    for (const { index } of rows) taken.add(index)
    for (const s of body) {
      for (const name of introducedNames(s)) taken.add(name)
      for (const e of stmtExprs(s)) visit(e, (node) => node.kind === 'fold' && taken.add(node.index))
    }
  }
  return taken
}
