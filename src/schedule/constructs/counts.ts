/** Counts of a row that its threads read. They are cleared before the pass that counts, and are in shared memory after it. */
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { inlineElements, loopFor, overLoop } from '../normalise/elements.js'
import type { CountedRow } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseCounts: Normalise<StmtOf<'counts'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  const bins = inlineElements(s.bins, undefined, context)
  const most = bins.kind === 'const' ? Number(bins.value) : s.most
  const counted: CountedRow = { kind: 'counts', name: s.name, bins, most, loop, value }
  context.shared.set(s.name, counted)
  return [counted]
}

export const countedRowStatement: PassStatement<CountedRow> = {
  meets: false,
  isConditional: () => false,
  defines: ({ name }) => [{ kind: 'row', name, type: 'i32' }],
  places: ({ bins, loop }) => [bins, loop.length],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    check.index(s.bins)
    if (check.element(s.loop.index, s.value) !== 'i32') check.fail('a histogram counts integers')
    if (!(s.most >= 0)) check.fail(`${s.name} has memory for ${s.most} counts`)
  },
  describe: ({ name, value, bins }) => `count ${name}[${printExpr(value)}], below ${printExpr(bins)}, in shared memory`,
}
