/**
 * Derives an attention kernel from a group: two matmuls around a softmax. Ops that feed the matmuls become the address of each operand row, or an
 * expression that is computed while the row is loaded. Ops between the matmuls become the score of each query and key, and the key range. Ops that
 * follow become the address of each result row and the stored value.
 */
import type { AttentionKernel } from '../../ir/template.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import type { AttentionGroup } from './elements.js'
import { operandOf } from './operands.js'
import { outputOf } from './output.js'
import { checkClaimed, checkInner } from './parts.js'
import { productOf, type Roles } from './roles.js'
import { scoreOf } from './score.js'
import { checkRows, softmaxSlots } from './softmax_slots.js'

/** @throws usage `plan.illegal` naming the node that does not fit before, between or after the two matmuls */
export function deriveAttention(group: AttentionGroup, members: readonly Member[]): Derived<AttentionKernel> {
  const { graph, name, scores, context, roles, slots } = group
  const scored = scoreOf(group)
  const query = operandOf(group, roles.query, 'i')
  const key = operandOf(group, roles.key, 'j')
  const value = operandOf(group, roles.value, 'j')
  for (const [operand, { limit }] of [
    ['key', key],
    ['value', value],
  ] as const) {
    if (limit === undefined || scored.upper.some((bound) => equalExprs(limit, bound))) continue
    const reason = `the mask lets queries attend to ${operand}s that are padding`
    throw illegal(name, scores.name, scored.members.at(-1)?.node.name ?? context.name, reason)
  }
  const output = outputOf(group)
  const parts = [query, key, value, output, scored].flatMap(({ members: claimed }) => claimed)
  checkRows(group, scored, output.owned !== undefined || query.limit !== undefined)
  checkClaimed(name, scores, members, parts)
  checkInner(
    graph,
    name,
    [scores, context, ...members.map(({ node }) => node)],
    [output.value, ...scored.rows.map(({ id }) => id)],
  )
  const extents = (list: Roles['heads']) => productOf(list.map((extent) => slots.extent(extent)))
  const queries = extents(roles.queries === undefined ? [] : [roles.queries])
  const keys = slots.extent(roles.keys)
  const kernel: AttentionKernel = {
    kind: 'attention',
    name,
    source: scored.source,
    batch: extents(roles.batch),
    heads: extents(roles.heads),
    queries,
    keys,
    headDim: slots.extent(roles.headDim),
    valueDim: slots.extent(roles.valueDim),
    query: slots.rowWithAttributes(query.access),
    key: slots.rowWithAttributes(key.access),
    value: slots.rowWithAttributes(value.access),
    out: slots.rowWithAttributes(output.access),
    ...softmaxSlots(slots, scored, keys, output.stored),
    queryCount: query.limit ?? queries,
    ownedCount: output.owned ?? queries,
    // Last, since the calls above may add parameters.
    ...slots.signature(name, members),
  }
  return { kernel, ...slots.bindings() }
}
