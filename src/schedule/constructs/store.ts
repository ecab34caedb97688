/** A store of one element per row. */

import { whenOf } from '../../ir/constructs/when.js'
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { inlineElements } from '../normalise/elements.js'
import type { Normalise, RowStatement } from './construct.js'

export const normaliseStore: Normalise<StmtOf<'store'>> = (s, context) => {
  const inline = (e: Expr): Expr => inlineElements(e, undefined, context)
  const when = s.when === undefined ? {} : { when: inline(s.when) }
  return [{ ...s, indices: s.indices.map(inline), value: inline(s.value), ...when }]
}

export const storeStatement: RowStatement<StmtOf<'store'>> = {
  searches: false,
  isConditional: ({ when }) => when !== undefined,
  defines: () => [],
  places: (s) => [...s.indices, ...whenOf(s)],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    for (const at of s.indices) check.index(at)
    check.store(s.tensor, s.indices.length, check.type(s.value))
    if (s.when !== undefined && check.type(s.when) !== 'bool') check.fail('a condition is no boolean')
  },
  describe: (s) => `store ${s.tensor}[${s.indices.map(printExpr).join(', ')}] = ${printExpr(s.value)}`,
}
