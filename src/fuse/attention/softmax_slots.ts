/** The slots of a softmax in a kernel whose tensors are all declared. */
import type { Expr } from '../../ir/expr.js'
import type { ValueId } from '../../ir/graph.js'
import type { RowValue, SoftmaxSlots } from '../../ir/template.js'
import { valueAt } from '../graph/edit.js'
import { illegal } from '../space/space.js'
import type { AttentionGroup } from './elements.js'
import { rangeOf } from './masks.js'
import type { AttentionScore, ScoreRow } from './score.js'
import type { AttentionSlots } from './slots.js'

/** @param keys number of keys @param stored the stored value */
export function softmaxSlots(slots: AttentionSlots, scored: AttentionScore, keys: Expr, stored: Expr): SoftmaxSlots {
  const { lower, upper } = rangeOf(scored, keys)
  return {
    score: slots.withAttributes(scored.score),
    range: { lower: slots.withAttributes(lower), upper: slots.withAttributes(upper) },
    denominator: slots.withAttributes(scored.denominator),
    stored: slots.withAttributes(stored),
    ...(scored.rows.length === 0 ? {} : { perRow: scored.rows.map((row) => rowValue(slots, row)) }),
  }
}

const rowValue = (slots: AttentionSlots, { id, shape, indices, value }: ScoreRow): RowValue => ({
  tensor: slots.tensor(id, shape, 'out'),
  indices: indices.map((each) => slots.withAttributes(each)),
  value: slots.withAttributes(value),
})

/** Refuses values of rows that the kernel reads too, or whose rows are not all computed. */
export function checkRows(
  { name, graph, context, around, slots }: AttentionGroup,
  { rows, members }: AttentionScore,
  isPadded: boolean,
): void {
  const refuse = (id: ValueId, reason: string): Error => {
    const maker = members.find(({ node }) => Object.values(node.outputs).includes(id))
    return illegal(name, maker?.node.name ?? '', context.name, reason)
  }
  for (const { id } of rows) {
    if (isPadded) throw refuse(id, 'values of rows are stored only where every query is computed, not of packed sequences')
    if (valueAt(graph.values, id).layout !== 'row') throw refuse(id, 'values of rows are stored row-major')
    if (slots.bindings().inputs.some(({ value }) => around.through(value) === around.through(id)))
      throw refuse(id, 'the kernel would read a value of a row that it stores: leave out the op that reads it')
  }
}
