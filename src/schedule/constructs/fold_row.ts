/** Rows computed by a recurrence. They are rows like any other; the threads of a row compute them in order, chunk by chunk, where they are read. */
import type { StmtOf } from '../../ir/kernel.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { inlineElements, overLoop, rowLoop } from '../normalise/elements.js'
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
