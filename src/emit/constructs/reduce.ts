/** A reduction as CUDA source: one accumulator per lane, combined by the lanes of the row after the pass. */
import type { Reduction } from '../../schedule/normal.js'
import { expressionText, monoidText } from '../expression.js'
import { scalarText } from '../names.js'
import type { PassText } from './construct.js'

export const reductionText: PassText<Reduction> = {
  write(r, { context, first }) {
    const { names } = context
    const lanes = names.fresh(`${names.value(r.name)}_lanes`)
    return {
      declare: () => [`heddle::Accumulator<${monoidText(r.monoid, r.value.type)}> ${lanes};`],
      element: () => [`${lanes}.add(${expressionText(r.value, context)}, ${first} + i);`],
      closeChunk: () => [`${lanes}.end_chunk();`],
      finish: () => [`const ${scalarText[r.type]} ${names.value(r.name)} = team.reduce(${lanes});`],
    }
  },
}
