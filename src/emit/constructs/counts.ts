/** Counts of a row in shared memory as CUDA source: cleared before the pass, incremented by each element, and read after a barrier. */
import type { CountedRow } from '../../schedule/normalise/normal.js'
import { expressionText, operandText } from '../print/expression.js'
import type { PassText } from './construct.js'

export const countedRowText: PassText<CountedRow> = {
  header: 'shared_counts.cuh',
  write({ name, bins, most, value }, { context }) {
    const { names, shared, walk } = context
    const text = names.value(name)
    const places = names.fresh(`${text}_places`)
    const room = bins.kind === 'const' || walk !== 'kept' ? `${Math.max(1, most)}` : 'Team::lanes * CHUNKS * VEC'
    return {
      declare: () => [
        `HEDDLE_SHARED(int, ${places}, Team::rows * ${room});`,
        `const auto ${text} = heddle::shared_counts<${room}>(team, ${places}, ${operandText(bins, context)});`,
      ],
      element: () => [`${text}.count(${expressionText(value, context)});`],
      finish: () => {
        shared?.set(name, `${text}.get`)
        return ['team.meet();']
      },
    }
  },
}
