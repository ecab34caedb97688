/**
 * Values that members of a group produce for later members: a scalar of the row, or a row whose elements are read where the indices are the same
 * and recomputed (inlined) where they are not.
 */
import { i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { ValueId } from '../../ir/graph.js'
import type { StmtOf } from '../../ir/kernel.js'
import { rewrite, substitute } from '../../ir/walk.js'
import { equalExprs } from './positions.js'
import { illegal, type Member } from './space.js'

/** An index of a value along one of its atoms. */
export interface Place {
  readonly index: Expr
  /** True along an axis of one element, whose only index is 0. */
  readonly isUnit: boolean
}

/** A value that a member computes for later members, defined at logical `places`. */
export type Produced =
  | {
      readonly kind: 'scalar'
      readonly member: string
      readonly places: readonly Place[]
      readonly value: Expr
      /** The value as an expression of its indices alone; undefined when it depends on a reduction. */
      readonly pure: Expr | undefined
    }
  | {
      readonly kind: 'row'
      readonly member: string
      /** The row's loop index stands for the inner atom. */
      readonly row: StmtOf<'row'>
      readonly places: readonly Place[]
      /** The element as an expression of its indices alone; undefined when it depends on a reduction. */
      readonly pure: Expr | undefined
      /** True if the row is in the fused body, so that its elements can be read. */
      readonly runs: boolean
    }

/** A reader's index for each axis of a producer. A view between them may add and drop axes of one element. */
function indicesAt(made: readonly Place[], read: readonly Place[]): readonly Expr[] {
  if (made.length === read.length && made.every(({ isUnit }, i) => isUnit === read[i]?.isUnit))
    return read.map(({ index }) => index)
  const others = read.filter(({ isUnit }) => !isUnit).map(({ index }) => index)
  return made.map(({ isUnit }) => {
    const index = isUnit ? i32(0) : others.shift()
    if (index === undefined) throw new Error(`internal: ${read.length} indices of a value with ${made.length} axes`)
    return index
  })
}

export class ProducedValues {
  readonly #group: string
  readonly #byValue = new Map<ValueId, Produced>()
  /** Inputs of the group's inner views, by result. */
  readonly #viewed: ReadonlyMap<ValueId, ValueId>

  constructor(group: string, viewed: ReadonlyMap<ValueId, ValueId>) {
    this.#group = group
    this.#viewed = viewed
  }

  set(value: ValueId, made: Produced): void {
    this.#byValue.set(value, made)
  }

  /** Producer of a value, or of the value it is a view of; undefined if no member computes it. */
  of(value: ValueId): Produced | undefined {
    return this.#byValue.get(this.#viewed.get(value) ?? value)
  }

  /** Reads a result of another member: its row where the position is the same, its expression where it is not. */
  read(producer: Produced, member: Member, places: readonly Place[]): Expr {
    const crosses = () =>
      illegal(
        this.#group,
        producer.member,
        member.node.name,
        `${member.node.name} reads what ${producer.member} makes of a reduction at other rows than the reduction has, so that every row would need the reductions of others: store ${producer.member} first`,
      )
    const { pure, places: made } = producer
    const indices = indicesAt(made, places)
    const moved = indices.filter((index, i) => made[i]?.isUnit !== true && !equalExprs(index, made[i]?.index))
    if (producer.kind === 'scalar') {
      if (moved.length === 0) return producer.value
    } else {
      const { row, runs } = producer
      const element = indices[made.findIndex(({ index }) => index.kind === 'index' && index.name === row.index)]
      if (runs && element !== undefined && moved.every((index) => index === element)) {
        return { kind: 'element', type: row.type, row: row.name, index: element }
      }
    }
    if (pure === undefined) throw crosses()
    const values = made.flatMap(({ index }, i) => (index.kind === 'index' ? [[index.name, indices[i] ?? index] as const] : []))
    return substitute(pure, new Map(values))
  }

  /** The expression with every element of another member's row replaced by its definition; undefined if one depends on a reduction. */
  pure(expr: Expr): Expr | undefined {
    const rows = new Map(
      [...this.#byValue.values()].flatMap((made) => (made.kind === 'row' ? [[made.row.name, made] as const] : [])),
    )
    let whole = true
    const made = rewrite(expr, (node) => {
      if (node.kind === 'local') whole = false
      if (node.kind !== 'element') return node
      const producer = rows.get(node.row)
      if (producer?.pure === undefined) {
        whole = false
        return node
      }
      return substitute(producer.pure, new Map([[producer.row.index, node.index]]))
    })
    return whole ? made : undefined
  }
}
