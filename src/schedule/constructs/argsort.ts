/** A sorted row: a pass writes its elements, the threads of a block sort them after the pass, and the result stays in shared memory. */
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { loopFor, overLoop } from '../normalise/elements.js'
import type { SortedRow } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseArgsort: Normalise<StmtOf<'argsort'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  const sorted: SortedRow = { kind: 'argsort', name: s.name, most: s.most, loop, value }
  context.shared.set(s.name, sorted)
  return [sorted]
}

export const sortedRowStatement: PassStatement<SortedRow> = {
  // The lanes synchronise after the pass. As with ranked rows, there is one copy of it for all rows: two would have memory for keys each.
  meets: true,
  isConditional: () => false,
  defines: ({ name }) => [{ kind: 'row', name, type: 'i32' }],
  places: ({ loop }) => [loop.length],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    if (check.element(s.loop.index, s.value) === 'bool') check.fail('only numbers are sorted')
  },
  describe: ({ name, value, most }) =>
    `${name} = places of ${printExpr(value)} in ascending order, at most ${most} in shared memory`,
}
