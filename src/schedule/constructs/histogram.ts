/** A histogram: its counts are cleared before the pass that counts. */
import { index as indexVar } from '../../ir/build.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { inlineElements, loopFor, overLoop } from '../normalise/elements.js'
import { freshName, type Histogram } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseHistogram: Normalise<StmtOf<'histogram'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  const bin = freshName('bin', context.taken)
  const bins = inlineElements(s.bins, undefined, context)
  const indices = [...s.rows.map((e) => inlineElements(e, undefined, context)), indexVar(bin)]
  return [{ kind: 'histogram', tensor: s.tensor, indices, bin, bins, loop, value }]
}

export const histogramStatement: PassStatement<Histogram> = {
  meets: false,
  isConditional: () => false,
  defines: () => [],
  places: ({ bins, loop, indices }) => [bins, loop.length, ...indices],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    check.index(s.bins)
    for (const at of s.indices) if (check.element(s.bin, at) !== 'i32') check.fail('an index is no integer')
    if (check.element(s.loop.index, s.value) !== 'i32') check.fail('a histogram counts integers')
    check.store(s.tensor, s.indices.length, 'i32')
  },
  describe: (h) =>
    `count ${h.tensor}[${h.indices.map(printExpr).join(', ')}] for ${h.bin} = ${printExpr(h.value)}, below ${printExpr(h.bins)}`,
}
