/** A reduction: every lane combines its elements in a pass, then the lanes combine their partial results. */
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { loopFor, overLoop } from '../normalise/elements.js'
import type { Reduction } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseReduce: Normalise<StmtOf<'reduce'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  return [{ kind: 'reduce', name: s.name, type: s.type, monoid: s.monoid, loop, value }]
}

export const reductionStatement: PassStatement<Reduction> = {
  meets: false,
  isConditional: () => false,
  defines: ({ name, type }) => [{ kind: 'local', name, type }],
  places: ({ loop }) => [loop.length],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify: (s, check) => check.says(s.name, s.type, check.combined(s.monoid, check.element(s.loop.index, s.value))),
  describe: ({ name, monoid, value }) => `${name} = ${monoid} of ${printExpr(value)}`,
}
