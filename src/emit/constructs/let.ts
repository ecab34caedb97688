/** A scalar of the row as CUDA source. */
import type { StmtOf } from '../../ir/kernel.js'
import { expressionText } from '../expression.js'
import { scalarText } from '../names.js'
import type { RowText } from './construct.js'

export const letText: RowText<StmtOf<'let'>> = {
  write: ({ name, type, value }, context) =>
    `const ${scalarText[type]} ${context.names.value(name)} = ${expressionText(value, context)};`,
}
