/** Rows that a recurrence makes: rows like any other, which the threads of a row make chunk by chunk where they are read, in turns. */
import type { StmtOf } from '../../ir/kernel.js'
import { nameChunkLoads } from '../chunk_loads.js'
import { inlineElements, overLoop, rowLoop } from '../elements.js'
import type { Normalise } from './construct.js'

export const normaliseFoldRow: Normalise<StmtOf<'foldRow'>> = (s, context) => {
  const loop = rowLoop(s, context)
  const values = s.values.map((value) => nameChunkLoads(overLoop(value, s.index, loop, context), loop, context))
  const starts = s.starts.map((start) => inlineElements(start, undefined, context))
  s.fold.fields.forEach(({ type }, field) => {
    const name = s.names[field] ?? ''
    context.rows.set(name, { kind: 'scanned', name, type, monoid: s.fold, starts, loop, values, field })
  })
  return []
}
