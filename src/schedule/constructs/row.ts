/** A row value: kept or recomputed by the readers of its elements; read in chunks if it is a load of consecutive elements. */
import type { StmtOf } from '../../ir/kernel.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { addLoadedRow, overLoop, rowLoop, runOf } from '../normalise/elements.js'
import { isShared, shareRow } from '../rows/shared_rows.js'
import type { Normalise } from './construct.js'

export const normaliseRow: Normalise<StmtOf<'row'>> = (s, context) => {
  if (s.kept !== undefined || isShared(s, context.statements, context.elementIndex)) return shareRow(s, context)
  const loop = rowLoop(s, context)
  const value = overLoop(s.value, s.index, loop, context)
  const run = value.kind === 'load' ? runOf(value, loop, context) : undefined
  if (value.kind === 'load' && run !== undefined && !context.inSpans) addLoadedRow(s.name, value, { loop, run }, context)
  else
    context.rows.set(s.name, { kind: 'computed', name: s.name, type: s.type, loop, value: nameChunkLoads(value, loop, context) })
  return []
}
