/**
 * The past that decode attention reads: a cache, row by row or through a table that says whose row holds a place, and what a group
 * puts into the cache on the way. Keys and values are each derived apart.
 */
import { i32, index, local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { NodeOf, ValueId } from '../../ir/graph.js'
import type { RowAccess } from '../../ir/template.js'
import { freeNames, substitute } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf } from './elements.js'

/** What a step adds to a cache. */
export interface DecodeStep {
  readonly append: Member
  /** The cache with the step, and the kernel's name of it. */
  readonly cached: ValueId
  readonly tensor: string
  readonly place: Expr
  /** Element `c` of head `h` of sequence `b`. */
  readonly element: Expr
}

export interface DecodePast {
  /** The sequence whose row holds place `j` of sequence `b`. */
  readonly owner: Expr
  /** The row in memory of place `j` of the local `owner`. */
  readonly access: RowAccess
  readonly fresh: DecodeStep | undefined
  readonly members: readonly Member[]
}

const roles = ['b', 'j', 'h', 'c'] as const

/** @throws usage `plan.illegal` naming two nodes when rows of `id` are computed on the way in another way than that */
export function pastOf(group: AttentionGroup, id: ValueId, product: NodeOf<'matmul'>): DecodePast {
  const { graph, name, around, slots, layouts } = group
  const members = around.before(id)
  if (members.length === 0) {
    const { shape, layout } = valueAt(graph.values, id)
    if (layout !== 'row' && !layouts.has(layout))
      throw illegal(
        name,
        product.name,
        product.name,
        `a value in layout ${layout} needs the node that makes or reads it in the group`,
      )
    const tensor = slots.tensor(id, shape, 'in', layouts.get(layout))
    return { owner: index('b'), access: rowOf(tensor), fresh: undefined, members }
  }
  const refuse = (reason: string) => illegal(name, members.at(-1)?.node.name ?? '', product.name, reason)
  const piece = elementOf(group, members, around.through(id), roles)
  const element = slots.declare(piece, piece.value, undefined)
  const written = placed(element)
  const row = written?.kept ?? element
  if (row.kind !== 'load') throw refuse('what attention reads of the past is read as it is, it cannot be computed on the way')
  const owner = row.indices[0] ?? i32(0)
  if (![...freeNames(owner)].every((free) => free === 'b' || free === 'j') || !isRow(row, owner))
    throw refuse('a place of the past is read at another place, or along another axis')
  const fresh = written === undefined ? undefined : stepOf(group, members, row, owner, written, product)
  return { owner, access: rowOf(row.tensor), fresh, members }
}

const rowOf = (tensor: string): RowAccess => ({
  tensor,
  indices: [local('owner', 'i32'), index('j'), index('h'), i32(0)],
})

const isRow = ({ indices }: ExprOf<'load'>, owner: Expr): boolean =>
  equalExprs(indices[0], owner) && roles.every((role, axis) => axis === 0 || equalExprs(indices[axis], index(role)))

/** `j === place ? replaced : kept`, with a place that does not depend on j. */
function placed(expr: Expr): { readonly place: Expr; readonly replaced: Expr; readonly kept: Expr } | undefined {
  const [condition, replaced, kept] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  if (condition?.kind !== 'call' || condition.fn !== 'eq' || replaced === undefined || kept === undefined) return undefined
  const [left, right] = condition.args
  for (const [at, place] of [
    [left, right],
    [right, left],
  ])
    if (equalExprs(at, index('j')) && place !== undefined && freeNames(place).size === 0) return { place, replaced, kept }
  return undefined
}

/** What the group's own append puts into the cache: of the row itself what attention reads of the owner. */
function stepOf(
  group: AttentionGroup,
  members: readonly Member[],
  row: ExprOf<'load'>,
  owner: Expr,
  { place, replaced }: { readonly place: Expr; readonly replaced: Expr },
  product: NodeOf<'matmul'>,
): DecodeStep {
  const { graph, name, around, slots } = group
  const append = members.find(({ kernel }) => kernel.tensors.some(({ updates }) => updates !== undefined))
  const output = append?.kernel.tensors.find(({ updates }) => updates !== undefined)
  const cached = output === undefined ? undefined : append?.node.outputs[output.name]
  const first = members[0]?.node.name ?? ''
  if (append === undefined || output === undefined || cached === undefined)
    throw illegal(name, first, product.name, 'a step is stored by an op that updates its cache in place')
  const piece = elementOf(group, around.before(cached), cached, roles)
  const own = placed(slots.declare(piece, piece.value, undefined))
  const isSame =
    own !== undefined &&
    equalExprs(own.place, place) &&
    !freeNames(own.replaced).has('j') &&
    equalExprs(substitute(own.replaced, new Map([['b', owner]])), replaced) &&
    equalExprs(own.kept, { ...row, indices: roles.map((role) => index(role)) })
  if (!isSame) throw illegal(name, append.node.name, product.name, 'what is stored of a step is not what is attended of it')
  const { shape } = valueAt(graph.values, cached)
  const tensor = slots.update(cached, shape, output.layout, row.tensor)
  return { append, cached, tensor, place, element: own.replaced }
}
