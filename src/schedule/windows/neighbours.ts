/** Windows whose places a body writes out by itself: loads of a tensor at neighbouring places. Used where windows are found. */
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel } from '../../ir/kernel.js'
import { linearExpr, linearOf, termKey } from '../../ir/linear.js'
import { visit } from '../../ir/walk.js'
import { hashOf } from '../normalise/rewrite.js'

/** Places farther from each other are no neighbours. */
const farthest = 16

/** True if an expression loads elements of a tensor that are neighbours along an axis. */
export function hasNeighbours(value: Expr, { rows }: Pick<Kernel, 'rows'>): boolean {
  const places = new Map<string, number>()
  let found = false
  visit(value, (node) => {
    if (node.kind !== 'load') return
    for (const [i, at] of node.indices.entries()) {
      const { terms, constant } = linearOf(unclampedPlace(at))
      if (!rows.some(({ index }) => terms.get(termKey(indexVar(index)))?.factor === 1)) continue
      const alone = linearExpr({ terms, constant: 0 })
      const key = hashOf({ ...node, indices: node.indices.map((each, other) => (other === i ? alone : unclampedPlace(each))) })
      const known = places.get(key)
      found ||= known !== undefined && known !== constant && Math.abs(known - constant) <= farthest
      places.set(key, constant)
    }
  })
  return found
}

/** A place without its clamp. */
function unclampedPlace(at: Expr): Expr {
  const [a, b] = at.kind === 'call' && (at.fn === 'maximum' || at.fn === 'minimum') ? at.args : []
  if (a !== undefined && b?.kind === 'const') return unclampedPlace(a)
  return a?.kind === 'const' && b !== undefined ? unclampedPlace(b) : at
}
