/**
 * Roles of a value's axes under another shape. Ops before, between and after the matmuls of attention see values through views, which merge, split
 * and regroup axes: heads `k j` of a matmul are one axis `k*j` of a rotation.
 */
import { call, dim, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Shape } from '../../ir/shape.js'
import { equalExprs } from '../space/positions.js'
import { alignedRuns } from '../space/runs.js'
import { digit } from './roles.js'
import type { AttentionSlots } from './slots.js'

/** The shape of a value, and the role of each of its axes. */
export interface RoleAxes {
  readonly shape: Shape
  readonly axes: readonly Expr[]
}

/**
 * Roles of the axes of a value as another shape has them.
 * @param mayRegroup true if axes with the given roles may be merged or split
 * @returns undefined for shapes that do not align, and for axes that may not be regrouped
 */
export function seenAxes(
  slots: AttentionSlots,
  seen: Shape,
  { shape, axes }: RoleAxes,
  mayRegroup: (roles: readonly Expr[]) => boolean = () => true,
): readonly Expr[] | undefined {
  const runs = alignedRuns(shape, seen)
  if (runs === undefined) return undefined
  const extentsOf = (of: Shape, at: readonly number[]): readonly Expr[] => at.map((axis) => dim(slots.dim(of[axis])))
  const found: Expr[] = []
  for (const { from, to } of runs) {
    const own = from.flatMap((axis) => axes[axis] ?? [])
    if (to.length === 0) continue
    if (own.length === 0) found.push(i32(0))
    else if (own.length === 1 && to.length === 1) found.push(...own)
    else if (!mayRegroup(own)) return undefined
    else {
      const [whole, extents] = [numberOf(own, extentsOf(shape, from)), extentsOf(seen, to)]
      found.push(...to.map((_, at) => digit(at, extents, whole)))
    }
  }
  return found
}

/** Several axes as one number. All digits of a head are the head. */
function numberOf(axes: readonly Expr[], extents: readonly Expr[]): Expr {
  const h = index('h')
  if (axes.every((axis, at) => equalExprs(axis, digit(at, extents, h)))) return h
  return axes.reduce((outer, axis, at) => call('add', call('mul', outer, extents[at] ?? i32(1)), axis))
}
