/** A sorted row as CUDA source: keys in shared memory, which the block sorts after the pass. */
import type { SortedRow } from '../../schedule/normalise/normal.js'
import { expressionText, operandText } from '../print/expression.js'
import type { PassText } from './construct.js'

/** Number of keys that there is memory for: the network sorts powers of two. */
const roomFor = (most: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, most)))

export const sortedRowText: PassText<SortedRow> = {
  header: 'sort.cuh',
  write({ name, most, loop, value }, { context, first }) {
    const { names, shared } = context
    const text = names.value(name)
    const keys = names.fresh(`${text}_keys`)
    return {
      declare: () => [`HEDDLE_SHARED(heddle::SortKey, ${keys}, ${roomFor(most)});`],
      element: () => [`${keys}[${first} + i] = heddle::sort_key(${expressionText(value, context)}, ${first} + i);`],
      finish: () => {
        shared?.set(name, `${text}.place`)
        return [`const auto ${text} = heddle::sort_keys(team, ${keys}, ${operandText(loop.length, context)});`]
      },
    }
  },
}
