/**
 * What lies between the two products of attention: the softmax, the score it takes of each pair of a query and a key, and how many
 * keys a mask leaves. Attention of any form has them.
 */
import { call, i32, index, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { rewrite } from '../../ir/walk.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf } from './elements.js'

/** Lower than any score: a mask may hide a key by it. */
const hidden = -1e29

export interface AttentionScore {
  readonly softmax: Member
  /** The softmax and what is before it. */
  readonly members: readonly Member[]
  /** An expression of the local `raw` and the roles of the scores. */
  readonly score: Expr
  /** Keys that are not masked; undefined for all. */
  readonly keyCount: Expr | undefined
}

/** @throws usage `plan.illegal` naming two nodes when no softmax is between the products, or a score depends on other pairs */
export function scoreOf(group: AttentionGroup, members: readonly Member[]): AttentionScore {
  const { name, scores, context, around, slots, roles } = group
  const softmax = members.find(({ node }) => node.op === 'softmax')
  if (softmax === undefined) throw illegal(name, scores.name, context.name, 'attention needs a softmax between its two products')
  if (softmax.node.outputs.y !== around.through(context.a))
    throw illegal(name, softmax.node.name, context.name, 'the second product does not multiply the softmax')
  const between = around.behind(scores.out, (member) => member === softmax)
  const found = { softmax, members: [softmax, ...between] }
  const raw = local('raw')
  if (between.length === 0) return { ...found, score: raw, keyCount: undefined }
  const piece = elementOf(group, between, around.through(softmax.node.inputs.x ?? 0), roles.scores)
  const product = piece.derived.inputs.find((binding) => around.through(binding.value) === scores.out)?.param
  const places = roles.scores.map(index)
  const inner = rewrite(piece.value, (expr) => {
    if (expr.kind !== 'load' || expr.tensor !== product) return expr
    if (expr.indices.length === places.length && expr.indices.every((place, i) => equalExprs(place, places[i]))) return raw
    throw illegal(name, scores.name, softmax.node.name, 'a score depends on another pair')
  })
  const mask = maskOf(inner)
  const keyCount = mask === undefined ? undefined : slots.declare(piece, mask.count, product)
  return { ...found, score: slots.declare(piece, mask?.kept ?? inner, product), keyCount }
}

/** A mask of the form `key < count ? kept : hidden`, or `key <= last`. */
function maskOf(expr: Expr): { readonly kept: Expr; readonly count: Expr } | undefined {
  const [condition, kept, other] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  if (condition?.kind !== 'call' || kept === undefined || other?.kind !== 'const') return undefined
  const [position, bound] = condition.args
  if (Number(other.value) > hidden || bound === undefined || !equalExprs(position, index('j'))) return undefined
  if (condition.fn === 'lt') return { kept, count: bound }
  return condition.fn === 'le' ? { kept, count: call('add', bound, i32(1)) } : undefined
}
