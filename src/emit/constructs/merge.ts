/** A reduction by a user monoid as CUDA source: one accumulator per lane, from whose total the fields are taken. */
import type { Merged } from '../../schedule/normal.js'
import { expressionText } from '../expression.js'
import { scalarText } from '../names.js'
import { fieldsText, fieldText } from '../user_monoid.js'
import type { PassText } from './construct.js'

export const mergeText: PassText<Merged> = {
  header: 'fields.cuh',
  write(merged, { context, first }) {
    const { names, ownName } = context
    const { monoid, values } = merged
    const lanes = names.fresh('merged_lanes')
    const all = names.fresh('merged_fields')
    return {
      declare: () => [`heddle::Accumulator<${ownName(monoid)}> ${lanes};`],
      element: () => [`${lanes}.add(${fieldsText(values.map((value) => expressionText(value, context)))}, ${first} + i);`],
      closeChunk: () => [`${lanes}.end_chunk();`],
      finish: () => [
        `const auto ${all} = team.reduce(${lanes});`,
        ...merged.names.map((name, i) => {
          const type = scalarText[monoid.fields[i]?.type ?? 'f32']
          return `[[maybe_unused]] const ${type} ${names.value(name)} = ${fieldText(monoid, i, all)};`
        }),
      ],
    }
  },
}
