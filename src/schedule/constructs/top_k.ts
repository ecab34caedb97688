/** A ranking: the elements that the lanes of a row keep in a pass are in shared memory after it, as rows that may be read at any index. */
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { loopFor, overLoop } from '../normalise/elements.js'
import type { Ranking } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseTopK: Normalise<StmtOf<'topK'>> = (s, context) => {
  if (s.count.kind !== 'const') throw new Error(`internal: the number of elements ${s.name} ranks is not fixed`)
  const loop = loopFor(s.index, s.length, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context)
  const { name, indices } = s
  const ranking: Ranking = { kind: 'topK', name, indices, count: Number(s.count.value), loop, value }
  for (const row of [name, indices]) context.shared.set(row, ranking)
  return [ranking]
}

export const rankingStatement: PassStatement<Ranking> = {
  meets: true,
  isConditional: () => false,
  defines: ({ name, indices }) => [
    { kind: 'row', name, type: 'f32' },
    { kind: 'row', name: indices, type: 'i32' },
  ],
  places: ({ loop }) => [loop.length],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    if (check.element(s.loop.index, s.value) !== 'f32') check.fail('only floats are ranked')
    if (!Number.isInteger(s.count) || s.count < 1) check.fail(`${s.count} elements are ranked`)
  },
  describe: ({ name, indices, count, value }) => `${name}, ${indices} = top ${count} of ${printExpr(value)}, in shared memory`,
}
