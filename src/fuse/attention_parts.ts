/** Finding one's way around the two products of attention: their axes, what feeds them, what follows them, and guards of padding. */
import { constant, index } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { type Graph, inputsOf, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import { rewrite } from '../ir/walk.js'
import { equalExprs } from './positions.js'
import type { Member } from './space.js'

/** Whether two products are `b s h d, b t h d -> b h s t` and `b h s t, b t h d -> b s h d`, whatever their axes are called. */
export function areAttention(scores: NodeOf<'matmul'>, context: NodeOf<'matmul'>): boolean {
  const as = (names: readonly string[], roles: readonly string[], rest: string) => {
    const known = new Map(names.map((name, i) => [name, roles[i] ?? rest]))
    return (axes: readonly string[]): string => axes.map((axis) => known.get(axis) ?? rest).join(' ')
  }
  const first = as(scores.subscripts.a, ['b', 's', 'h', 'd'], 't')
  const second = as(context.subscripts.a, ['b', 'h', 's', 't'], 'd')
  return (
    [first(scores.subscripts.b), first(scores.subscripts.out)].join(', ') === 'b t h d, b h s t' &&
    [second(context.subscripts.b), second(context.subscripts.out)].join(', ') === 'b t h d, b s h d'
  )
}

/** The members of a group among the nodes of its graph. */
export class Surroundings {
  readonly #graph: Graph
  readonly #members: readonly Member[]

  constructor(graph: Graph, members: readonly Member[]) {
    this.#graph = graph
    this.#members = members
  }

  /** What a value is before the views that made it. */
  through(id: ValueId): ValueId {
    const view = this.#graph.nodes.find((node) => node.kind === 'view' && node.out === id)
    return view?.kind === 'view' ? this.through(view.input) : id
  }

  /** Members that use a value, directly or through others, up to the first for which `stop` holds. */
  behind(id: ValueId, stop: (member: Member) => boolean = () => false): Member[] {
    const reached = new Set<ValueId>([id])
    const found: Member[] = []
    for (const node of this.#graph.nodes) {
      if (!inputsOf(node).some((input) => reached.has(input))) continue
      const member = this.#members.find((candidate) => candidate.node === node)
      if (node.kind !== 'view' && (member === undefined || stop(member))) continue
      if (member !== undefined) found.push(member)
      for (const out of outputsOf(node)) reached.add(out)
    }
    return found
  }

  /** Members a value is made by, directly or through others. */
  before(id: ValueId): Member[] {
    const wanted = new Set<ValueId>([id])
    const found: Member[] = []
    for (const node of [...this.#graph.nodes].reverse()) {
      if (!outputsOf(node).some((out) => wanted.has(out))) continue
      const member = this.#members.find((candidate) => candidate.node === node)
      if (node.kind !== 'view' && member === undefined) continue
      if (member !== undefined) found.unshift(member)
      for (const input of inputsOf(node)) wanted.add(input)
    }
    return found
  }
}

/** Strips `position < limit ? x : 0`, and with it every choice that the same condition makes inside. */
export function unguard(expr: Expr, position: string): { readonly row: Expr; readonly limit: Expr | undefined } {
  const [condition, kept, other] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  const [at, limit] = condition?.kind === 'call' && condition.fn === 'lt' ? condition.args : []
  if (condition === undefined || kept === undefined || limit === undefined || !equalExprs(at, index(position)))
    return { row: expr, limit: undefined }
  if (!equalExprs(other, constant('f32', 0))) return { row: expr, limit: undefined }
  const row = rewrite(kept, (node) =>
    node.kind === 'call' && node.fn === 'select' && equalExprs(node.args[0], condition) ? (node.args[1] ?? node) : node,
  )
  return { row, limit }
}
