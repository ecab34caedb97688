/**
 * Relations of the axes of values and the dimensions of members, while a group's space is built. Values that the group computes determine which axes
 * are the same. A tensor from outside does so too, unless two reads of it would unify axes that a member has separate, such as documents of queries
 * and of keys. Such tensors are found first, on a separate set of axes.
 */
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { TensorParam } from '../../ir/kernel.js'
import { printShape } from '../../ir/shape.js'
import { Axes, AxisConflict } from './axes.js'
import type { Member } from './member.js'

/** A tensor of a member and the value it is bound to. */
export interface Bound {
  readonly member: Member
  readonly tensor: TensorParam
  readonly id: ValueId
}

/** An axis of a tensor: the member's dimension and the value's axis. */
interface Pair {
  readonly own: number
  readonly of: number
}

export class Relations {
  readonly axes = new Axes()
  readonly #graph: Graph
  readonly #ofValue = new Map<ValueId, readonly number[]>()
  readonly #ofDim = new Map<string, number>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** @throws AxisConflict for a tensor of another rank than its value */
  pairs({ member, tensor, id }: Bound): readonly Pair[] {
    const shape = this.#graph.values[id]?.shape ?? []
    return tensor.dims.map((dim, i) => {
      const [extent, of] = [shape[i], this.ofValue(id)[i]]
      if (extent === undefined || of === undefined)
        throw new AxisConflict(`${tensor.name} is "${tensor.dims.join(' ')}", its value "${printShape(shape)}"`)
      const own = this.ofDim(member, dim) ?? this.axes.add(extent, dim)
      this.#ofDim.set(keyOf(member, dim), own)
      return { own, of }
    })
  }

  ofValue(id: ValueId): readonly number[] {
    const known = this.#ofValue.get(id)
    if (known !== undefined) return known
    const made = (this.#graph.values[id]?.shape ?? []).map((extent) => this.axes.add(extent, 'n'))
    this.#ofValue.set(id, made)
    return made
  }

  ofDim(member: Member, dim: string): number | undefined {
    return this.#ofDim.get(keyOf(member, dim))
  }

  /** @throws AxisConflict */
  align({ input, out }: NodeOf<'view'>): void {
    this.axes.alignView(this.ofValue(input), this.ofValue(out))
  }

  /** True if some member has both axes, or all of their atoms, as separate ones. */
  areApart(one: number, other: number, members: readonly Member[]): boolean {
    if (this.axes.areOne(one, other)) return false
    return members.some((member) => {
      const own = member.kernel.dims.flatMap((dim) => {
        const axis = this.ofDim(member, dim)
        return axis === undefined ? [] : this.axes.atoms(axis)
      })
      return [one, other].every((axis) => this.axes.atoms(axis).every((atom) => own.includes(atom)))
    })
  }
}

const keyOf = (member: Member, dim: string): string => `${member.node.name}.${dim}`

/**
 * Axes of tensors from outside that are not unified with those of the bound value: their positions, by tensor.
 * @throws AxisConflict
 */
export function readsApart(
  graph: Graph,
  members: readonly Member[],
  views: readonly NodeOf<'view'>[],
  bound: readonly Bound[],
): ReadonlyMap<Bound, readonly number[]> {
  const relations = new Relations(graph)
  const made = new Set(members.flatMap(({ node }) => Object.values(node.outputs)))
  // All dimensions come first, since the check concerns those of all members.
  for (const each of bound) relations.pairs(each)
  for (const each of bound) if (made.has(each.id)) for (const { own, of } of relations.pairs(each)) relations.axes.unify(own, of)
  for (const view of views) relations.align(view)
  // Tensors with the most axes determine the most.
  const given = bound.filter(({ id }) => !made.has(id)).toSorted((a, b) => b.tensor.dims.length - a.tensor.dims.length)
  return new Map(
    given.map((each) => {
      const places = relations.pairs(each).flatMap(({ own, of }, place) => {
        if (relations.areApart(own, of, members)) return [place]
        relations.axes.unify(own, of)
        return []
      })
      return [each, places] as const
    }),
  )
}
