/** A store of one element per row as CUDA source, executed by the first lane. */
import type { StmtOf } from '../../ir/kernel.js'
import { expressionText, offsetText, operandText } from '../expression.js'
import type { RowText } from './construct.js'

export const storeText: RowText<StmtOf<'store'>> = {
  write: (s, context) => {
    const offset = offsetText(s.tensor, s.indices, context)
    const also = s.when === undefined ? '' : ` && ${operandText(s.when, context)}`
    const value = expressionText(s.value, context)
    return `if (team.lane() == 0${also}) heddle::write(${context.names.tensor(s.tensor)}, ${offset}, ${value});`
  },
}
