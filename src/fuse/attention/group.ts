/**
 * Derives attention from a group in which one of two matmuls feeds the other. The main loop follows from the extents and the mask. Equal extents of
 * queries and keys are self-attention of a sequence. Queries that each attend further than the previous one, such as the tokens of a prompt after a
 * cache, use the same loop, and so do queries that usually fill a tile, such as tokens that attend to another sequence. Anything
 * else is decode attention: few queries over cached positions. Unless the extents are equal, the other loop is tried if the likelier refuses the group.
 */
import { HeddleError, usageError } from '../../errors.js'
import { dim } from '../../ir/build.js'
import { type Graph, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { dimsIn, type Extent, evaluateExtent, sameExtent } from '../../ir/shape.js'
import type { AttentionKernel, DecodeAttentionKernel } from '../../ir/template.js'
import { freeNames } from '../../ir/walk.js'
import type { LayoutsByName } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { illegal, isElementwise, type Member } from '../space/space.js'
import { deriveAttention } from './attention.js'
import { deriveDecodeAttention } from './decode_attention.js'
import type { AttentionGroup } from './elements.js'
import type { Masked } from './masks.js'
import { Surroundings } from './parts.js'
import { type MatmulPair, NoRoles, type Roles, rolesOf } from './roles.js'
import { scoreOf } from './score.js'
import { AttentionSlots } from './slots.js'

type Matmul = NodeOf<'matmul'>

/** The operand of `to` that depends on `from`, directly or through members; undefined if neither does. */
export function fedOperand(graph: Graph, from: Matmul, to: Matmul, members: readonly Member[]): 'a' | 'b' | undefined {
  const around = new Surroundings(graph, members)
  const made = new Set<ValueId>([from.out, ...around.after(from.out).flatMap(({ node }) => outputsOf(node))])
  return (['a', 'b'] as const).find((operand) => made.has(to[operand]) || made.has(around.through(to[operand])))
}

/** @throws usage `plan.illegal` naming two nodes, with the reasons of every main loop that could have run the group */
export function deriveAttentionGroup(
  graph: Graph,
  name: string,
  pair: MatmulPair,
  members: readonly Member[],
  layouts: LayoutsByName,
): Derived<AttentionKernel | DecodeAttentionKernel> {
  const { scores, context, weightsSide } = pair
  const around = new Surroundings(graph, members)
  const isPlain = around.before(context[weightsSide]).every(({ kernel }) => isElementwise(kernel))
  const derive = (how: typeof deriveAttention | typeof deriveDecodeAttention) => {
    const slots = new AttentionSlots(graph)
    const roles = named(name, pair, isPlain, () => rolesOf(graph, pair, (extent) => dim(slots.dim(extent))))
    const group: AttentionGroup = { graph, name, scores, context, layouts, roles, around, slots }
    // Slots of its own, so that the trial of a score adds no parameters to the kernel.
    const trial: AttentionGroup = { ...group, slots: new AttentionSlots(graph) }
    return { roles, scored: () => scoreOf(trial), run: () => how(group, members) }
  }
  const sequence = derive(deriveAttention)
  const { queries, keys } = sequence.roles
  const isSequence = queries !== undefined && sameExtent(queries, keys)
  const decode = isSequence ? [] : [derive(deriveDecodeAttention)]
  const isTiled = isSequence || fillsTile(graph, queries) || upperBoundVaries(sequence.scored) === true
  const loops = isTiled ? [sequence, ...decode] : [...decode, sequence]
  const reasons: HeddleError[] = []
  for (const { run } of loops) {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof HeddleError)) throw error
      reasons.push(error)
    }
  }
  const isAttention = !isPlain || upperBoundVaries(sequence.scored) !== undefined
  throw isAttention ? refusedBy(name, reasons) : illegal(name, scores.name, context.name, notAttention)
}

/** Smallest number of rows of a tile of queries. */
const tileRows = 16

/** True if the queries are usually at least a tile. */
function fillsTile({ typical = {} }: Graph, queries: Extent | undefined): boolean {
  if (queries === undefined || dimsIn([queries]).some((name) => typical[name] === undefined)) return false
  return evaluateExtent(queries, typical) >= tileRows
}

/** Reason if no op between two matmuls reduces a row: they are not attention, so a reason about attention would mislead. */
const notAttention =
  'a kernel holds one matmul, or two with a softmax between them; nothing between these combines elements of a row'

/** Refusal with the reason of each main loop, the likelier loop's first. */
function refusedBy(name: string, [first, second]: readonly HeddleError[]): Error {
  if (first === undefined) return new Error('internal: no main loop was tried')
  if (second === undefined || second.message === first.message) return first
  const other = second.message.replace(`group ${name}: `, '')
  const details = { about: first.about, ...(first.hint === undefined ? {} : { hint: first.hint }) }
  return usageError(first.code, `${first.message}. The other main loop does not run it either: ${other}`, details)
}

/**
 * True if the last key that a query attends to depends on the query. Undefined if the ops between the matmuls are refused.
 * @param scored may refuse the group, as the loops will
 */
function upperBoundVaries(scored: () => Pick<Masked, 'upper'>): boolean | undefined {
  try {
    return scored().upper.some((bound) => freeNames(bound).has('i'))
  } catch (error) {
    if (error instanceof HeddleError) return undefined
    throw error
  }
}

function named(name: string, { scores, context }: MatmulPair, isPlain: boolean, make: () => Roles): Roles {
  try {
    return make()
  } catch (error) {
    if (error instanceof NoRoles) throw illegal(name, scores.name, context.name, isPlain ? notAttention : error.message)
    throw error
  }
}
