/**
 * Derives an attention kernel from a group: two products around a softmax. What feeds the products (head splits, restored
 * padding, parts of a stack) becomes the place each row is read from, what lies between product and softmax (scale, mask) the
 * score of each pair, what follows becomes the place each result is written to.
 */
import { call, dim, i32, index, local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { type Graph, type GraphNode, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import type { AttentionKernel, RowAccess } from '../ir/template.js'
import { rewrite, substitute } from '../ir/walk.js'
import { areAttention, Surroundings, unguard } from './attention_parts.js'
import { AttentionSlots, type Piece } from './attention_slots.js'
import { type Derived, deriveKernel } from './derive.js'
import type { LayoutsByName } from './edit.js'
import { valueAt } from './edit.js'
import { innerViews, isUsed } from './members.js'
import { equalExprs } from './positions.js'
import { illegal, isElementwise, type Member } from './space.js'

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
  readonly #layouts: LayoutsByName

  constructor(graph: Graph, name: string, scores: Matmul, context: Matmul, members: readonly Member[], layouts: LayoutsByName) {
    this.#layouts = layouts
    this.#graph = graph
    this.#name = name
    this.#scores = scores
    this.#context = context
    this.#members = members
    this.#around = new Surroundings(graph, members)
    this.#slots = new AttentionSlots(graph)
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
    const output = this.#output()
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
      keyCount: scored.keyCount ?? keys,
      queryCount: query.limit ?? queries,
      ownedCount: output.owned ?? queries,
    }
    return { kernel, ...this.#slots.bindings() }
  }

  /** The one element a group of ops stores, as an expression of the template's indices, with the tensors it loads declared. */
  #expression(members: readonly Member[], value: ValueId, indices: readonly string[]): Piece {
    const derived = deriveKernel(
      this.#graph,
      this.#name,
      members,
      innerViews(this.#graph, members),
      new Set([value]),
      this.#layouts,
    )
    const { kernel } = derived
    const [stmt, ...more] = kernel.body
    const first = members[0]?.node.name ?? ''
    const last = members.at(-1)?.node.name ?? ''
    if (stmt?.kind !== 'storeRow' || more.length > 0 || !members.every((member) => isElementwise(member.kernel))) {
      throw illegal(this.#name, first, last, 'around the softmax of attention only elementwise ops can be compiled')
    }
    if (kernel.rows.length !== 3)
      throw illegal(this.#name, first, last, 'its elements are not seen as batch, heads, rows, columns')
    const names = [...kernel.rows.map((row) => row.index), stmt.index]
    const stored = [...stmt.rows, index(stmt.index)]
    // An output stored in another order than the rows run gives each index its role by where it is stored.
    const roles = new Map<string, Expr>()
    stored.forEach((expr, i) => {
      const role = indices[i]
      if (expr.kind === 'index' && role !== undefined) roles.set(expr.name, role === 'd' ? i32(0) : index(role))
    })
    if (names.some((row) => !roles.has(row))) throw illegal(this.#name, first, last, 'it is stored at computed positions')
    return { derived, value: substitute(stmt.value, roles) }
  }

  /** Score of a pair, and the number of keys a mask of the form `key < count` leaves. */
  #score(between: readonly Member[], value: ValueId, softmax: Member): { score: Expr; keyCount: Expr | undefined } {
    const raw = local('raw')
    if (between.length === 0) return { score: raw, keyCount: undefined }
    const piece = this.#expression(between, value, ['b', 'h', 'i', 'j'])
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
    const piece = this.#expression(members, this.#around.through(id), indices)
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

  /** Where results go: through head merges to the value others read, which may be packed. */
  #output() {
    const members = this.#around.behind(this.#context.out)
    const last = members.at(-1)
    const packed = last?.node.op === 'pack_rows' ? last : undefined
    const merging = members.filter((member) => member !== packed)
    const merged = merging.at(-1)
    const made = merged === undefined ? this.#context.out : (Object.values(merged.node.outputs)[0] ?? this.#context.out)
    if (merged !== undefined) this.#checkIdentity(merging, made)
    if (packed === undefined) {
      if (merged === undefined) this.#checkRowMajor(made, this.#context.name)
      const tensor = this.#slots.tensor(made, valueAt(this.#graph.values, made).shape, 'out')
      return { access: { tensor, indices: place(['b', 'i', 'h', 'd']) }, owned: undefined, members, value: made }
    }
    const value = packed.node.outputs.y ?? 0
    const [tokens] = valueAt(this.#graph.values, value).shape
    const [, , heads, headDim] = valueAt(this.#graph.values, made).shape
    const starts = this.#graph.inputs.starts
    if (tokens === undefined || heads === undefined || headDim === undefined || starts === undefined)
      throw illegal(this.#name, packed.node.name, this.#context.name, 'its result is not packed from "batch seq heads headDim"')
    const tensor = this.#slots.tensor(value, [tokens, heads, headDim], 'out')
    const start = (b: Expr): Expr => ({ kind: 'load', type: 'i32', tensor: this.#slots.input(starts), indices: [b] })
    const b = index('b')
    const next = call('add', b, i32(1))
    const batch = dim(this.#slots.dim(valueAt(this.#graph.values, starts).shape[0]))
    // The last sequence also owns the rows behind its end, so that every row of the packed tensor is defined.
    const end = call('select', call('lt', next, batch), start(next), dim(this.#slots.dim(tokens)))
    return {
      access: { tensor, indices: [call('add', start(b), index('i')), index('h'), i32(0)] },
      owned: call('sub', end, start(b)),
      members,
      value,
    }
  }

  /** A value that no node of the group lays out must be row-major: its layout is known by name only. */
  #checkRowMajor(id: ValueId, node: string): void {
    const { layout } = valueAt(this.#graph.values, id)
    if (layout === 'row') return
    throw illegal(this.#name, node, node, `a value in layout ${layout} needs the node that makes or reads it in the group`)
  }

  /** Results may be laid out differently, not changed. */
  #checkIdentity(members: readonly Member[], value: ValueId): void {
    const piece = this.#expression(members, value, ['b', 'i', 'h', 'c'])
    const wanted = place(['b', 'i', 'h', 'c'])
    const { value: stored } = piece
    if (stored.kind === 'load' && stored.indices.every((expr, i) => equalExprs(expr, wanted[i]))) return
    throw illegal(this.#name, this.#context.name, members.at(-1)?.node.name ?? '', 'the result of attention is stored as it is')
  }

  /** Nothing inside may be needed outside, except the result. */
  #checkInner(result: ValueId): void {
    const inside = new Set<GraphNode>([this.#scores, this.#context, ...this.#members.map(({ node }) => node)])
    for (const node of inside) {
      const needed = outputsOf(node).find((id) => id !== result && isUsed(this.#graph, id, inside))
      if (needed !== undefined)
        throw illegal(this.#name, node.name, this.#context.name, `${node.name} is needed outside, but never reaches memory`)
    }
  }
}

const place = (names: readonly string[]): Expr[] => names.map((name) => (name === 'd' ? i32(0) : index(name)))
