/** A short row in shared memory, computed by a pass. src/schedule/rows/shared_rows.ts decides which rows become shared. */
import { printExpr } from '../../ir/print.js'
import type { SharedRow } from '../normalise/normal.js'
import type { PassStatement } from './construct.js'

export const sharedRowStatement: PassStatement<SharedRow> = {
  meets: false,
  isConditional: () => false,
  defines: ({ name, type }) => [{ kind: 'row', name, type }],
  places: ({ loop }) => [loop.length],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    check.says(s.name, s.type, check.element(s.loop.index, s.value))
    if (!(s.length >= 1) || (s.loop.length.kind === 'const' && s.loop.length.value !== s.length))
      check.fail(`${s.name} has memory for ${s.length} elements`)
  },
  describe: ({ name, value }) => `${name} = ${printExpr(value)}, in shared memory`,
}
