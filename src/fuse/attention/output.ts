/**
 * The end of an attention group: the ops that lay its result out, after which it may be packed, and one chain of elementwise ops
 * on what is stored, such as rounding to int8. A chain that only moves elements leaves results as they are.
 */
import { call, dim, i32, index, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { ValueId } from '../../ir/graph.js'
import type { RowAccess } from '../../ir/template.js'
import { rewrite, visit } from '../../ir/walk.js'
import { isNodeOf } from '../../lang/op_node.js'
import { packRows } from '../../std/index.js'
import { valueAt } from '../graph/edit.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf, place, placesOf, storeOf } from './elements.js'
import type { Piece } from './slots.js'

export interface AttentionOutput {
  readonly access: RowAccess
  /** Rows of a sequence that are written; undefined for as many as there are queries. */
  readonly owned: Expr | undefined
  /** What is stored of the local `result`. */
  readonly stored: Expr
  /** The members it consists of, and the value they end in. */
  readonly members: readonly Member[]
  readonly value: ValueId
}

/** @throws usage `plan.illegal` naming two nodes when a member behind the products does more than move or change one element */
export function outputOf(group: AttentionGroup): AttentionOutput {
  const members = group.around.behind(group.context.out)
  const packing = members.findIndex(({ node }) => isNodeOf(packRows, node))
  const made = packing < 0 ? { ...padded(group, members), members } : { ...packed(group, members, packing), members }
  const { layout } = valueAt(group.graph.values, made.value)
  const last = members.at(-1)?.node.name ?? group.context.name
  if (layout !== 'row')
    throw illegal(group.name, group.context.name, last, `attention stores rows, its result would be in layout ${layout}`)
  return made
}

type Output = Omit<AttentionOutput, 'members'>

/** Results of every row of every sequence. */
function padded(group: AttentionGroup, members: readonly Member[]): Output {
  const { graph, slots, context } = group
  const value = resultOf(members) ?? context.out
  const { shape, layout } = valueAt(graph.values, context.out)
  // Ops behind a row-major product need not see heads.
  const stored = layout === 'row' ? changedBy(group, members, context.out, value) : storedBy(group, members, value)
  const tensor = slots.tensor(value, shape, 'out')
  return { access: { tensor, indices: place(group.roles.result) }, owned: undefined, stored, value }
}

/** Results of packed rows: what is before the packing lays them out, what is behind it changes what is stored. */
function packed(group: AttentionGroup, members: readonly Member[], packing: number): Output {
  const { graph, slots, context, name } = group
  const merging = members.slice(0, packing)
  const made = resultOf(merging) ?? context.out
  if (storedBy(group, merging, made).kind !== 'local')
    throw illegal(name, context.name, merging.at(-1)?.node.name ?? '', 'a result is changed behind its packing, not before')
  const pack = members.slice(packing, packing + 1)
  const rows = resultOf(pack) ?? context.out
  const changing = members.slice(packing + 1)
  const value = resultOf(changing) ?? rows
  const stored = changedBy(group, changing, rows, value)
  const [tokens] = valueAt(graph.values, value).shape
  const [, , heads, headDim] = valueAt(graph.values, made).shape
  const starts = graph.packing?.starts
  if (tokens === undefined || heads === undefined || headDim === undefined || starts === undefined) {
    const reason = 'its result is not packed from "batch seq heads headDim"'
    throw illegal(name, pack[0]?.node.name ?? '', context.name, reason)
  }
  const tensor = slots.tensor(value, [tokens, heads, headDim], 'out')
  const start = (b: Expr): Expr => ({ kind: 'load', type: 'i32', tensor: slots.input(starts), indices: [b] })
  const b = index('b')
  const next = call('add', b, i32(1))
  const batch = dim(slots.dim(valueAt(graph.values, starts).shape[0]))
  // The last sequence also owns the rows behind its end, so that every row of the packed tensor is defined.
  const end = call('select', call('lt', next, batch), start(next), dim(slots.dim(tokens)))
  return {
    access: { tensor, indices: [call('add', start(b), index('i')), index('h'), i32(0)] },
    owned: call('sub', end, start(b)),
    stored,
    value,
  }
}

const resultOf = (members: readonly Member[]): ValueId | undefined => Object.values(members.at(-1)?.node.outputs ?? {})[0]

/** What members that lay a result out store of it. */
function storedBy(group: AttentionGroup, members: readonly Member[], value: ValueId): Expr {
  if (members.length === 0) return local('result')
  const roles = group.roles.result.map((role) => (role === 'd' ? 'c' : role))
  return inResult(group, members, elementOf(group, members, value, roles), group.context.out, place(roles))
}

/** What members that read a value as it lies store of it. */
function changedBy(group: AttentionGroup, members: readonly Member[], read: ValueId, value: ValueId): Expr {
  if (members.length === 0) return local('result')
  const { derived, stmt } = storeOf(group, members, value)
  return inResult(group, members, { derived, value: stmt.value }, read, placesOf(stmt))
}

/** A stored element as an expression of the local `result` and attributes: it reads `read` at the same place and nothing else. */
function inResult(
  { name, context, around, slots }: AttentionGroup,
  members: readonly Member[],
  piece: Piece,
  read: ValueId,
  places: readonly Expr[],
): Expr {
  const result = local('result')
  const { inputs } = piece.derived
  const product = inputs.find((binding) => around.through(binding.value) === around.through(read))?.param
  const stored = rewrite(piece.value, (expr) =>
    expr.kind === 'load' && expr.tensor === product && equalExprs({ ...expr, indices: places }, expr) ? result : expr,
  )
  visit(stored, (expr) => {
    if (expr.kind === 'load' && expr.tensor !== product) {
      const value = inputs.find(({ param }) => param === expr.tensor)?.value
      const reader = members.find(({ node }) => Object.values(node.inputs).some((id) => id === value)) ?? members.at(-1)
      throw illegal(name, context.name, reader?.node.name ?? '', `${reader?.node.name} reads another tensor than the result`)
    }
    if (!['const', 'attr', 'local', 'call'].includes(expr.kind)) {
      const reason = 'an element is stored as a function of itself and attributes alone'
      throw illegal(name, context.name, members.at(-1)?.node.name ?? '', reason)
    }
  })
  if (stored.type !== 'f32')
    throw illegal(name, context.name, members.at(-1)?.node.name ?? '', 'attention stores floats and int8, not other integers')
  return slots.declare(piece, stored, undefined)
}
