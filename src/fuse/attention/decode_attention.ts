/**
 * Derives decode attention from a group: two products around a softmax whose queries are one, or a few, of each sequence. What feeds
 * the first product is computed of each query; the past is read through a table where beams share it; and where the group puts the
 * keys and values of a step into their caches, the kernel does so in place and attends them as it computes them.
 */
import { i32, index, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, GraphNode, NodeOf } from '../../ir/graph.js'
import type { DecodeAttentionKernel, FreshPlace, RowAccess } from '../../ir/template.js'
import { type LayoutsByName, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { elementOfHeads } from './decode_query.js'
import type { AttentionGroup } from './elements.js'
import { outputOf } from './output.js'
import { type AttentionForm, checkClaimed, checkInner, Surroundings } from './parts.js'
import { type DecodePast, pastOf } from './past.js'
import { scoreOf } from './score.js'
import { AttentionSlots } from './slots.js'

/** Roles of axes by form; an element of a head is `c` in operands, and `d` in results, which are addressed by their first element. */
const rolesOf = {
  step: { query: ['b', 'h', 'c'], scores: ['b', 'h', 'j'], result: ['b', 'h', 'd'] },
  memory: { query: ['b', 'i', 'h', 'c'], scores: ['b', 'h', 'i', 'j'], result: ['b', 'i', 'h', 'd'] },
} as const

/** @throws usage `plan.illegal` naming the node that does not fit before, between or behind the two products */
export function deriveDecodeAttention(
  graph: Graph,
  name: string,
  form: Exclude<AttentionForm, 'sequence'>,
  scores: NodeOf<'matmul'>,
  context: NodeOf<'matmul'>,
  members: readonly Member[],
  layouts: LayoutsByName,
): Derived<DecodeAttentionKernel> {
  const slots = new AttentionSlots(graph)
  const around = new Surroundings(graph, members)
  const roles = rolesOf[form]
  const group: AttentionGroup = { graph, name, scores, context, layouts, roles, around, slots }
  const scored = scoreOf(group, members)
  const query = queryOf(group, roles.query)
  const key = pastOf(group, scores.b, scores)
  const value = pastOf(group, context.b, context)
  checkAlike(group, key, value)
  const fresh = freshOf(group, form, key, value)
  const output = outputOf(group)
  checkClaimed(
    name,
    scores,
    members,
    [scored, query, key, value, output].flatMap((part) => part.members),
  )
  const inside: readonly GraphNode[] = [scores, context, ...members.map(({ node }) => node)]
  const caches = [key, value].flatMap(({ fresh: place }) => (place === undefined ? [] : [place.cached]))
  checkInner(graph, name, inside, [output.value, ...caches])
  const shape = valueAt(graph.values, scores.b).shape
  const queries = form === 'step' ? i32(1) : slots.extent(valueAt(graph.values, scores.a).shape[1])
  const [batch, places, heads, headDim] = shape.map((extent) => slots.extent(extent))
  if (batch === undefined || places === undefined || heads === undefined || headDim === undefined)
    throw new Error('internal: an attention operand without four axes')
  const kernel: DecodeAttentionKernel = {
    kind: 'decode attention',
    ...slots.signature(),
    name,
    source: scored.softmax.kernel.source,
    batch,
    heads,
    queries,
    headDim,
    valueDim: headDim,
    shared: i32(1),
    places,
    query: query.element,
    owner: key.owner,
    key: key.access,
    value: value.access,
    out: output.access,
    score: scored.score,
    stored: output.stored,
    range: { lower: i32(0), upper: scored.keyCount ?? places },
    denominator: local('total'),
    fresh,
  }
  return { kernel, ...slots.bindings() }
}

/** An element of the queries: whatever the elementwise members before them make of it. */
function queryOf(
  group: AttentionGroup,
  roles: readonly string[],
): { readonly element: Expr; readonly members: readonly Member[] } {
  const { graph, scores, around, slots } = group
  const members = around.before(scores.a)
  if (members.length > 0) return { element: elementOfHeads(group, members, scores.a, roles), members }
  const { shape, layout } = valueAt(graph.values, scores.a)
  const tensor = slots.tensor(scores.a, shape, 'in', group.layouts.get(layout))
  if (layout !== 'row' && !group.layouts.has(layout)) throw unknownLayout(group, layout)
  return { element: { kind: 'load', type: 'f32', tensor, indices: roles.map(index) }, members }
}

const unknownLayout = ({ name, scores }: AttentionGroup, layout: string) =>
  illegal(name, scores.name, scores.name, `a value in layout ${layout} needs the node that makes or reads it in the group`)

/** Keys and values are of the same places. */
function checkAlike({ name, scores, context }: AttentionGroup, key: DecodePast, value: DecodePast): void {
  if (!equalExprs(key.owner, value.owner))
    throw illegal(name, scores.name, context.name, 'keys and values are read through different tables')
  if (!equalExprs(key.fresh?.place, value.fresh?.place))
    throw illegal(name, scores.name, context.name, 'keys and values are stored at different places')
}

function freshOf(group: AttentionGroup, form: AttentionForm, key: DecodePast, value: DecodePast): FreshPlace | undefined {
  if (key.fresh === undefined || value.fresh === undefined) return undefined
  if (form !== 'step')
    throw illegal(group.name, key.fresh.append.node.name, group.scores.name, 'a step is stored where each sequence has one query')
  const cacheOf = (tensor: string): RowAccess => ({ tensor, indices: [index('b'), index('j'), index('h'), i32(0)] })
  return {
    place: key.fresh.place,
    key: key.fresh.element,
    value: value.fresh.element,
    keyCache: cacheOf(key.fresh.tensor),
    valueCache: cacheOf(value.fresh.tensor),
  }
}
