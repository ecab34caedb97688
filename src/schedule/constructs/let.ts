/** A scalar of the row. */

import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { inlineElements } from '../normalise/elements.js'
import type { Normalise, RowStatement } from './construct.js'

export const normaliseLet: Normalise<StmtOf<'let'>> = (s, context) => {
  const value = inlineElements(s.value, undefined, context)
  context.lets.set(s.name, value)
  return [{ ...s, value }]
}

export const letStatement: RowStatement<StmtOf<'let'>> = {
  searches: false,
  isConditional: () => false,
  defines: ({ name, type }) => [{ kind: 'local', name, type }],
  places: () => [],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify: (s, check) => check.says(s.name, s.type, check.type(s.value)),
  describe: ({ name, value }) => `${name} = ${printExpr(value)}`,
}
