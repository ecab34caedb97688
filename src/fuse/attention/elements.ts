/**
 * One element of what the ops around attention compute, as an expression: how places, scores and stored values are taken from
 * their bodies. Operands, scores and the output of an attention group are each derived apart from the others.
 */
import { i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { StmtOf } from '../../ir/kernel.js'
import { substitute } from '../../ir/walk.js'
import type { LayoutsByName } from '../graph/edit.js'
import { type Derived, deriveKernel } from '../rows/derive.js'
import { innerViews } from '../space/members.js'
import { illegal, isElementwise, type Member } from '../space/space.js'
import type { Surroundings } from './parts.js'
import type { AttentionSlots, Piece } from './slots.js'

/** An attention group while it is derived: `scores` and `context` are its two products, the slots grow as they are read off. */
export interface AttentionGroup {
  readonly graph: Graph
  readonly name: string
  readonly scores: NodeOf<'matmul'>
  readonly context: NodeOf<'matmul'>
  readonly layouts: LayoutsByName
  /** Roles of the axes of the scores, and of those of the result, of which `d` stands at element 0. */
  readonly roles: { readonly scores: readonly string[]; readonly result: readonly string[] }
  readonly around: Surroundings
  readonly slots: AttentionSlots
}

/** The only statement of elementwise ops, which stores `value`. @throws usage `plan.illegal` when they are not elementwise */
export function storeOf(
  { graph, name, context, layouts }: AttentionGroup,
  members: readonly Member[],
  value: ValueId,
): { readonly derived: Derived; readonly stmt: StmtOf<'storeRow'> } {
  const derived = deriveKernel(graph, name, members, innerViews(graph, members), new Set([value]), layouts)
  const [stmt, ...more] = derived.kernel.body
  if (stmt?.kind === 'storeRow' && more.length === 0 && members.every((member) => isElementwise(member.kernel)))
    return { derived, stmt }
  const [first, ...rest] = members.map(({ node }) => node.name)
  const [one, other] = [rest.length === 0 ? context.name : (first ?? ''), rest.at(-1) ?? first ?? '']
  throw illegal(name, one, other, 'around the softmax of attention only elementwise ops can be compiled')
}

/**
 * The one element a group of ops stores, as an expression of the template's indices: `indices` are the roles of the axes of
 * `value`, of which `d` stands at element 0.
 * @throws usage `plan.illegal` when the ops are not elementwise over those axes
 */
export function elementOf(group: AttentionGroup, members: readonly Member[], value: ValueId, indices: readonly string[]): Piece {
  const { derived, stmt } = storeOf(group, members, value)
  const { rows } = derived.kernel
  const first = members[0]?.node.name ?? ''
  const last = members.at(-1)?.node.name ?? ''
  if (rows.length !== indices.length - 1)
    throw illegal(
      group.name,
      first,
      last,
      `its elements are not seen as ${indices.length === 4 ? 'batch, heads, rows, columns' : `${indices.length} axes`}`,
    )
  // An output stored in another order than the rows run gives each index its role by where it is stored.
  const roles = new Map<string, Expr>()
  placesOf(stmt).forEach((expr, i) => {
    const role = indices[i]
    if (expr.kind === 'index' && role !== undefined) roles.set(expr.name, role === 'd' ? i32(0) : index(role))
  })
  if ([...rows.map((row) => row.index), stmt.index].some((row) => !roles.has(row)))
    throw illegal(group.name, first, last, 'it is stored at computed positions')
  return { derived, value: substitute(stmt.value, roles) }
}

/** Where a statement stores an element. */
export const placesOf = (stmt: StmtOf<'storeRow'>): readonly Expr[] => [...stmt.rows, index(stmt.index)]

/** Indices by role, `d` standing at element 0. */
export const place = (names: readonly string[]): Expr[] => names.map((name) => (name === 'd' ? i32(0) : index(name)))
