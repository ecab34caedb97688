/**
 * Addresses of the rows of queries, keys and values. Members that only move elements (head splits, restored padding, parts of a stack, repeated
 * heads) become the address of a row. Members that compute (a rotation, a norm over the head, a bias) become an expression of the element, which
 * is computed while the row is loaded.
 */
import { isAffineAlong } from '../../ir/affine_layout.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Layout } from '../../ir/layout.js'
import { linearOf } from '../../ir/linear.js'
import type { RowAccess, RowOperand } from '../../ir/template.js'
import { freeNames, visit } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf, rowAt } from './elements.js'
import { unguard } from './parts.js'
import type { RoleOperand } from './roles.js'

export interface Operand {
  readonly access: RowOperand
  /** Rows from this position on are zero: `position < limit ? row : 0`. */
  readonly limit: Expr | undefined
  readonly members: readonly Member[]
}

/** @throws usage `plan.illegal` for an operand whose rows no main loop can load */
export function operandOf(group: AttentionGroup, { value, axes }: RoleOperand, position: 'i' | 'j'): Operand {
  const { graph, around, slots, name, scores } = group
  const members = around.before(value)
  if (members.length === 0) {
    const { shape, layout } = valueAt(graph.values, value)
    if (layout !== 'row') throw illegal(name, scores.name, scores.name, unknownLayout(layout))
    const tensor = slots.tensor(value, shape, 'in')
    return {
      access: rowOrElement(group, { kind: 'load', type: 'f32', tensor, indices: axes }, position),
      limit: undefined,
      members,
    }
  }
  const { shape } = valueAt(graph.values, value)
  const piece = elementOf(group, members, around.through(value), { shape, axes, viewed: value })
  const { row, limit } = unguard(piece.value, position)
  return {
    access: rowOrElement(group, slots.inKernelNames(piece, row, undefined), position),
    limit: limit === undefined ? undefined : slots.inKernelNames(piece, limit, undefined),
    members,
  }
}

/** Reason to refuse a value that is not row-major if no node of the group declares its layout: only the layout's name is known then. */
export const unknownLayout = (layout: string): string =>
  `a value in layout ${layout} needs the node that makes or reads it in the group`

/** A row, if rows of consecutive positions are strided; otherwise an element that is gathered or computed individually. */
function rowOrElement({ slots }: AttentionGroup, element: Expr, position: string): RowOperand {
  const row = element.kind === 'load' ? rowAt(element.tensor, element.indices) : undefined
  if (row !== undefined && isStrided(row, position, slots.layoutOf(row.tensor))) return row
  let read: ExprOf<'load'> | undefined
  visit(element, (node) => {
    if (node.kind === 'load' && node.type === 'f32') read ??= node
  })
  return { tensor: read?.tensor ?? '', indices: read?.indices ?? [], element }
}

/** True if rows of consecutive positions have a constant stride, and the elements of a row are contiguous. */
function isStrided({ indices }: RowAccess, position: string, layout: Layout): boolean {
  const moves = (expr: Expr): boolean => freeNames(expr).has(position)
  const isSteady = (place: Expr, axis: number): boolean =>
    isAffineAlong(layout, axis) && [...linearOf(place).terms.values()].every(({ expr }) => expr.kind === 'index' || !moves(expr))
  return (
    isAffineAlong(layout, indices.length - 1) &&
    indices.filter(moves).length <= 1 &&
    indices.every((place, axis) => !moves(place) || isSteady(place, axis))
  )
}
