/**
 * Derives an attention kernel from a group: two products around a softmax. What feeds the products (head splits, restored
 * padding, parts of a stack) becomes the place each row is read from, what lies between product and softmax (scale, mask) the
 * score of each pair, what follows becomes the place each result is written to and what is stored there.
 */
import { i32, local } from '../../ir/build.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { AttentionKernel, RowAccess } from '../../ir/template.js'
import type { LayoutsByName } from '../graph/edit.js'
import { valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf, place } from './elements.js'
import { outputOf } from './output.js'
import { checkClaimed, checkInner, Surroundings, unguard } from './parts.js'
import { scoreOf } from './score.js'
import { AttentionSlots } from './slots.js'

type Matmul = NodeOf<'matmul'>

/** @throws usage `plan.illegal` naming the node that does not fit between, before or behind the two products */
export function deriveAttention(
  graph: Graph,
  name: string,
  scores: Matmul,
  context: Matmul,
  members: readonly Member[],
  layouts: LayoutsByName,
): Derived<AttentionKernel> {
  return new Attention(graph, name, scores, context, members, layouts).run()
}

class Attention {
  readonly #graph: Graph
  readonly #name: string
  readonly #scores: Matmul
  readonly #context: Matmul
  readonly #members: readonly Member[]
  readonly #around: Surroundings
  readonly #slots: AttentionSlots
  readonly #group: AttentionGroup

  constructor(graph: Graph, name: string, scores: Matmul, context: Matmul, members: readonly Member[], layouts: LayoutsByName) {
    this.#graph = graph
    this.#name = name
    this.#scores = scores
    this.#context = context
    this.#members = members
    this.#around = new Surroundings(graph, members)
    this.#slots = new AttentionSlots(graph)
    const roles = { scores: ['b', 'h', 'i', 'j'], result: ['b', 'i', 'h', 'd'] }
    this.#group = { graph, name, scores, context, layouts, roles, around: this.#around, slots: this.#slots }
  }

  run(): Derived<AttentionKernel> {
    const scored = scoreOf(this.#group, this.#members)
    const { softmax } = scored
    const query = this.#operand(this.#scores.a, 'i')
    const key = this.#operand(this.#scores.b, 'j')
    const value = this.#operand(this.#context.b, 'j')
    for (const [operand, limit] of [
      ['key', key.limit],
      ['value', value.limit],
    ] as const) {
      if (limit !== undefined && !equalExprs(limit, scored.keyCount)) {
        const reason = `the mask lets queries attend ${operand}s that are padding`
        throw illegal(this.#name, this.#scores.name, softmax.node.name, reason)
      }
    }
    const output = outputOf(this.#group)
    const parts = [query, key, value, output, scored].flatMap(({ members }) => members)
    checkClaimed(this.#name, this.#scores, this.#members, parts)
    const inside = [this.#scores, this.#context, ...this.#members.map(({ node }) => node)]
    checkInner(this.#graph, this.#name, inside, [output.value])
    const [batch, queries, heads, headDim] = valueAt(this.#graph.values, this.#scores.a).shape.map((extent) =>
      this.#slots.extent(extent),
    )
    const keys = this.#slots.extent(valueAt(this.#graph.values, this.#scores.out).shape[3])
    if (batch === undefined || queries === undefined || heads === undefined || headDim === undefined)
      throw new Error('internal: an attention operand without four axes')
    const kernel: AttentionKernel = {
      kind: 'attention',
      ...this.#slots.signature(),
      name: this.#name,
      source: softmax.kernel.source,
      batch,
      heads,
      queries,
      keys,
      headDim,
      valueDim: headDim,
      query: query.access,
      key: key.access,
      value: value.access,
      out: output.access,
      score: scored.score,
      stored: output.stored,
      range: { lower: i32(0), upper: scored.keyCount ?? keys },
      denominator: local('total'),
      queryCount: query.limit ?? queries,
      ownedCount: output.owned ?? queries,
    }
    return { kernel, ...this.#slots.bindings() }
  }

  /** Where the rows of an operand lie. A guard of the form `position < limit ? row : 0` is returned as its limit. */
  #operand(id: ValueId, position: 'i' | 'j') {
    const members = this.#around.before(id)
    const indices = ['b', position, 'h', 'd']
    if (members.length === 0) {
      this.#checkRowMajor(id, this.#scores.name)
      const access: RowAccess = {
        tensor: this.#slots.tensor(id, valueAt(this.#graph.values, id).shape, 'in'),
        indices: place(indices),
      }
      return { access, limit: undefined, members }
    }
    const piece = elementOf(this.#group, members, this.#around.through(id), indices)
    const { row, limit } = unguard(piece.value, position)
    if (row.kind !== 'load' || !equalExprs(row.indices.at(-1), i32(0))) {
      const name = members.at(-1)?.node.name ?? ''
      throw illegal(
        this.#name,
        name,
        this.#scores.name,
        'an operand of attention is read as it is, it cannot be computed on the way',
      )
    }
    const declared = this.#slots.declare(piece, row, undefined)
    if (declared.kind !== 'load') throw new Error('internal: a declared load is a load')
    return {
      access: { tensor: declared.tensor, indices: declared.indices },
      limit: limit === undefined ? undefined : this.#slots.declare(piece, limit, undefined),
      members,
    }
  }

  /** A value that no node of the group lays out must be row-major: its layout is known by name only. */
  #checkRowMajor(id: ValueId, node: string): void {
    const { layout } = valueAt(this.#graph.values, id)
    if (layout === 'row') return
    throw illegal(this.#name, node, node, `a value in layout ${layout} needs the node that makes or reads it in the group`)
  }
}
