/**
 * Derives decode attention: few queries over cached positions, together with the append of the current step. Elementwise ops that compute the queries
 * are fused into the kernel. Keys and values are rows of a cache, looked up through a table if beams share cached positions. Ops that replace
 * positions of the cache append a step. The kernel appends the step in place, and attends to its rows as computed.
 */
import type { Expr } from '../../ir/expr.js'
import type { GraphNode } from '../../ir/graph.js'
import type { DecodeAttentionKernel, FreshPlace } from '../../ir/template.js'
import { valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { elementOfHeads } from './decode_query.js'
import type { AttentionGroup } from './elements.js'
import { unknownLayout } from './operands.js'
import { outputOf } from './output.js'
import { checkClaimed, checkInner } from './parts.js'
import { type DecodePast, pastOf } from './past.js'
import { productOf, type Roles } from './roles.js'
import { scoreOf } from './score.js'
import { checkRows, softmaxSlots } from './softmax_slots.js'

/** @throws usage `plan.illegal` naming the node that does not fit before, between or after the two matmuls */
export function deriveDecodeAttention(group: AttentionGroup, members: readonly Member[]): Derived<DecodeAttentionKernel> {
  const { graph, name, scores, context, roles, slots } = group
  const scored = scoreOf(group)
  const query = queryOf(group)
  const key = pastOf(group, roles.key, scores)
  const value = pastOf(group, roles.value, context)
  checkAlike(group, key, value)
  const fresh = freshOf(group, key, value)
  const output = outputOf(group)
  checkRows(group, scored, false)
  checkClaimed(
    name,
    scores,
    members,
    [scored, query, key, value, output].flatMap((part) => part.members),
  )
  const inside: readonly GraphNode[] = [scores, context, ...members.map(({ node }) => node)]
  const caches = [key, value].flatMap(({ fresh: place }) => (place === undefined ? [] : [place.cached]))
  checkInner(graph, name, inside, [output.value, ...caches, ...scored.rows.map(({ id }) => id)])
  const extents = (list: Roles['heads']) => productOf(list.map((extent) => slots.extent(extent)))
  const places = slots.extent(roles.keys)
  const kernel: DecodeAttentionKernel = {
    kind: 'decode attention',
    name,
    source: scored.source,
    batch: extents(roles.batch),
    heads: extents(roles.heads),
    shared: key.shared === undefined ? extents(roles.heads) : slots.withAttributes(key.shared),
    queries: extents(roles.queries === undefined ? [] : [roles.queries]),
    headDim: slots.extent(roles.headDim),
    valueDim: slots.extent(roles.valueDim),
    places,
    query: slots.withAttributes(query.element),
    owner: key.owner,
    key: key.access,
    value: value.access,
    out: slots.rowWithAttributes(output.access),
    ...softmaxSlots(slots, scored, places, output.stored),
    fresh,
    // Last, since the calls above may add parameters.
    ...slots.signature(name, members),
  }
  return { kernel, ...slots.bindings() }
}

/** Element of the queries, with the members that compute it. */
function queryOf(group: AttentionGroup): { readonly element: Expr; readonly members: readonly Member[] } {
  const { graph, name, scores, around, slots, layouts, roles } = group
  const { value, axes } = roles.query
  const members = around.before(value)
  if (members.length > 0) return { element: elementOfHeads(group, members, roles.query), members }
  const { shape, layout } = valueAt(graph.values, value)
  const tensor = slots.tensor(value, shape, 'in', layouts.get(layout))
  if (layout !== 'row' && !layouts.has(layout)) throw illegal(name, scores.name, scores.name, unknownLayout(layout))
  return { element: { kind: 'load', type: 'f32', tensor, indices: axes }, members }
}

/** Checks that keys and values agree in table, stored position and shared heads. */
function checkAlike({ name, scores, context }: AttentionGroup, key: DecodePast, value: DecodePast): void {
  const refuse = (reason: string) => illegal(name, scores.name, context.name, reason)
  if (!equalExprs(key.owner, value.owner)) throw refuse('keys and values are read through different tables')
  if (!equalExprs(key.fresh?.place, value.fresh?.place)) throw refuse('keys and values are stored at different places')
  if (!equalExprs(key.shared, value.shared)) throw refuse('keys and values are shared by different heads')
}

function freshOf(group: AttentionGroup, key: DecodePast, value: DecodePast): FreshPlace | undefined {
  if (key.fresh === undefined || value.fresh === undefined) return undefined
  if (group.roles.queries !== undefined)
    throw illegal(
      group.name,
      key.fresh.append.node.name,
      group.scores.name,
      'a step is stored only where each sequence has one query',
    )
  return {
    place: key.fresh.place,
    key: key.fresh.element,
    value: value.fresh.element,
    keyCache: key.fresh.row,
    valueCache: value.fresh.row,
  }
}
