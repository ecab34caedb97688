/** Reductions and scans by user monoids: like those by built-in monoids, with one value per field. */
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { type Context, loopFor, overLoop, rowLoop } from '../normalise/elements.js'
import type { Loop, Merged } from '../normalise/normal.js'
import type { Normalise, PassStatement } from './construct.js'

const valuesOver = (s: StmtOf<'merge'> | StmtOf<'mergeScan'>, loop: Loop, context: Context): Expr[] =>
  s.values.map((value) => nameChunkLoads(overLoop(value, s.index, loop, context), loop, context))

export const normaliseMerge: Normalise<StmtOf<'merge'>> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  return [{ kind: 'merge', names: s.names, monoid: s.monoid, loop, values: valuesOver(s, loop, context) }]
}

/** Rows like any other, which the threads of a row compute chunk by chunk where they are read. */
export const normaliseMergeScan: Normalise<StmtOf<'mergeScan'>> = (s, context) => {
  const loop = rowLoop(s, context)
  const values = valuesOver(s, loop, context)
  s.monoid.fields.forEach(({ type }, field) => {
    const name = s.names[field] ?? ''
    context.rows.set(name, { kind: 'scanned', name, type, monoid: s.monoid, loop, values, field })
  })
  return []
}

export const mergeStatement: PassStatement<Merged> = {
  meets: false,
  isConditional: () => false,
  defines: ({ names, monoid }) => names.map((name, i) => ({ kind: 'local', name, type: monoid.fields[i]?.type ?? 'f32' })),
  places: ({ loop }) => [loop.length],
  values: ({ values }) => values,
  mapValues: (s, map) => ({ ...s, values: s.values.map(map) }),
  verify(s, check) {
    s.values.forEach((value, i) => {
      const field = s.monoid.fields[i]
      if (field === undefined) check.fail('a value is of no field')
      else check.says(field.name, field.type, check.element(s.loop.index, value))
    })
  },
  describe: ({ names, values }) => `(${names.join(', ')}) merge (${values.map(printExpr).join(', ')})`,
}
