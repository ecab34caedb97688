/**
 * Derives an attention kernel from a group: two products around a softmax. What feeds the products (head splits, restored
 * padding, parts of a stack) becomes the place each row is read from, what lies between product and softmax (scale, mask) the
 * score of each pair, what follows becomes the place each result is written to and what is stored there.
 */
import { i32, index, local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { type Graph, type GraphNode, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import type { AttentionKernel, RowAccess } from '../ir/template.js'
import { rewrite } from '../ir/walk.js'
import { type AttentionGroup, elementOf, place } from './attention_elements.js'
import { outputOf } from './attention_output.js'
import { areAttention, Surroundings, unguard } from './attention_parts.js'
import { AttentionSlots } from './attention_slots.js'
import type { Derived } from './derive.js'
import type { LayoutsByName } from './edit.js'
import { valueAt } from './edit.js'
import { isUsed } from './members.js'
import { equalExprs } from './positions.js'
import { illegal, type Member } from './space.js'

type Matmul = NodeOf<'matmul'>

/** Lower than any score: a mask may hide a key by it. */
const hidden = -1e29

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
    this.#group = { graph, name, scores, context, layouts, around: this.#around, slots: this.#slots }
  }

  run(): Derived<AttentionKernel> {
    const softmax = this.#members.find(({ node }) => node.op === 'softmax')
    if (softmax === undefined) {
      throw illegal(this.#name, this.#scores.name, this.#context.name, 'attention needs a softmax between its two products')
    }
    const probabilities = this.#around.through(this.#context.a)
    if (softmax.node.outputs.y !== probabilities) {
      throw illegal(this.#name, softmax.node.name, this.#context.name, 'the second product does not multiply the softmax')
    }
    if (!areAttention(this.#scores, this.#context)) {
      const reason = 'attention is "b s h d, b t h d -> b h s t" and "b h s t, b t h d -> b s h d"'
      throw illegal(this.#name, this.#scores.name, this.#context.name, reason)
    }
    const between = this.#around.behind(this.#scores.out, (member) => member === softmax)
    const scored = this.#score(between, this.#around.through(softmax.node.inputs.x ?? 0), softmax)
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
    const claimed = [softmax, ...between, ...query.members, ...key.members, ...value.members, ...output.members]
    const left = this.#members.find((member) => !claimed.includes(member))
    if (left !== undefined) {
      throw illegal(this.#name, left.node.name, this.#scores.name, 'it is neither before, between nor behind the two products')
    }
    this.#checkInner(output.value)
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
      headDim,
      query: query.access,
      key: key.access,
      value: value.access,
      out: output.access,
      score: scored.score,
      stored: output.stored,
      keyCount: scored.keyCount ?? keys,
      queryCount: query.limit ?? queries,
      ownedCount: output.owned ?? queries,
    }
    return { kernel, ...this.#slots.bindings() }
  }

  /** Score of a pair, and the number of keys a mask of the form `key < count` leaves. */
  #score(between: readonly Member[], value: ValueId, softmax: Member): { score: Expr; keyCount: Expr | undefined } {
    const raw = local('raw')
    if (between.length === 0) return { score: raw, keyCount: undefined }
    const piece = elementOf(this.#group, between, value, ['b', 'h', 'i', 'j'])
    const product = piece.derived.inputs.find((binding) => this.#around.through(binding.value) === this.#scores.out)?.param
    const places = [index('b'), index('h'), index('i'), index('j')]
    const inner = rewrite(piece.value, (expr) => {
      if (expr.kind !== 'load' || expr.tensor !== product) return expr
      if (expr.indices.length === 4 && expr.indices.every((place, i) => equalExprs(place, places[i]))) return raw
      throw illegal(this.#name, this.#scores.name, softmax.node.name, 'a score depends on another pair')
    })
    const [condition, kept, other] = inner.kind === 'call' && inner.fn === 'select' ? inner.args : []
    if (condition?.kind === 'call' && condition.fn === 'lt' && kept !== undefined && other?.kind === 'const') {
      const [position, count] = condition.args
      if (Number(other.value) <= hidden && count !== undefined && equalExprs(position, index('j'))) {
        const keyCount = this.#slots.declare(piece, count, product)
        return { score: this.#slots.declare(piece, kept, product), keyCount }
      }
    }
    return { score: this.#slots.declare(piece, inner, product), keyCount: undefined }
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

  /** Nothing inside may be needed outside, except the result. */
  #checkInner(result: ValueId): void {
    const inside = new Set<GraphNode>([this.#scores, this.#context, ...this.#members.map(({ node }) => node)])
    const last = [...inside].find((node) => outputsOf(node).includes(result))?.name ?? this.#context.name
    for (const node of inside) {
      const needed = outputsOf(node).find((id) => id !== result && isUsed(this.#graph, id, inside))
      if (needed !== undefined)
        throw illegal(this.#name, node.name, last, `${node.name} is needed outside, but never reaches memory`)
    }
  }
}
