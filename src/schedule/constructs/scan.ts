/** A scan. Its row is like any other; the threads of a row compute it chunk by chunk where it is read. */
import type { StmtOf } from '../../ir/kernel.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { overLoop, rowLoop } from '../normalise/elements.js'
import type { Normalise } from './construct.js'

export const normaliseScan: Normalise<StmtOf<'scan'>> = (s, context) => {
  const loop = rowLoop(s, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  context.rows.set(s.name, { kind: 'scanned', name: s.name, type: s.type, monoid: s.monoid, loop, values: [value], field: 0 })
  return []
}
