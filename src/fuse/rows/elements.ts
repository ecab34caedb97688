/**
 * Elementwise members after a member whose rows are these elements: a bias and an activation after a convolution, whose body sums for each of them. A
 * row of elements in the front end is then an element of each of the group's rows.
 */
import { index } from '../../ir/build.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { introducedNames, substitute } from '../../ir/walk.js'
import { isElementwise, loopDims, type Member, type Space } from '../space/space.js'

/**
 * The member with one element per row, if the axis it loops over is among the rows of the group. The axis must not be the one that row elements
 * run along, as it is where both axes of a square are one. Otherwise the member unchanged.
 */
export function byElement(member: Member, { rows, inner, atomsOf }: Space): Member {
  const { kernel } = member
  const [dim, ...others] = loopDims(kernel)
  if (dim === undefined || others.length > 0 || !isElementwise(kernel)) return member
  const atoms = [...kernel.rows.map((axis) => axis.dim), dim].flatMap((axis) => atomsOf(member, axis))
  return atoms.every((atom) => rows.includes(atom) && atom !== inner) ? { ...member, kernel: overElements(kernel, dim) } : member
}

function overElements(kernel: Kernel, dim: string): Kernel {
  const taken = new Set([...kernel.dims, ...kernel.rows.map((row) => row.index), ...kernel.body.flatMap(introducedNames)])
  const name = freshName('element', taken)
  const at = index(name)
  const body = kernel.body.map((stmt): Stmt => {
    if (stmt.kind !== 'storeRow') return stmt
    const value = substitute(stmt.value, new Map([[stmt.index, at]]))
    return { kind: 'store', tensor: stmt.tensor, indices: [...stmt.rows, at], value }
  })
  return { ...kernel, rows: [...kernel.rows, { index: name, dim }], body }
}
