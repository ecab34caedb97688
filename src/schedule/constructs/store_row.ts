/** A store of one element per loop index: in chunks if the stored elements are consecutive. */
import { index as indexVar } from '../../ir/build.js'
import { indicesOfRow } from '../../ir/constructs/store_row.js'
import { whenOf } from '../../ir/constructs/when.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { nameChunkLoads } from '../access/chunk_loads.js'
import { placeKey } from '../access/interleaved.js'
import { type Context, inlineElements, loopFor, overLoop, runOf } from '../normalise/elements.js'
import { freshName, type Loop, type LoopStore, type WrittenStore } from '../normalise/normal.js'
import { contains, hashOf, substituteIndex, usesIndex } from '../normalise/rewrite.js'
import type { Normalise, PassStatement } from './construct.js'

export const normaliseStoreRow: Normalise<StmtOf<'storeRow'>> = (s, context) =>
  normaliseWrittenStore({ ...s, kind: 'writtenStore', indices: indicesOfRow(s, indexVar(s.index)) }, context)

export const normaliseWrittenStore: Normalise<WrittenStore> = (s, context) => {
  const loop = loopFor(s.index, s.length, context)
  const inline = (e: Expr): Expr => inlineElements(substituteIndex(e, s.index, indexVar(loop.index)), undefined, context)
  const indices = s.indices.map(inline)
  const { when, lets } = named(s.when === undefined ? undefined : inline(s.when), loop, context)
  const value = nameChunkLoads(overLoop(s.value, s.index, loop, context), loop, context, when)
  const run = runOf({ kind: 'load', type: value.type, tensor: s.tensor, indices }, loop, context)
  const store: LoopStore = { kind: 'loopStore', tensor: s.tensor, indices, loop, value, run }
  const interleaved = context.interleaved.get(placeKey(store))
  if (when === undefined && interleaved !== undefined) return [{ ...store, run: Number.POSITIVE_INFINITY, interleaved }]
  if (when === undefined) return [...lets, store]
  // A chunk is stored whole or not at all.
  return [...lets, { ...store, when, run: usesIndex(when, loop.index) ? undefined : run }]
}

/** For chunks in pieces, names a row-uniform condition as a scalar, once: many loads depend on it. */
function named(
  when: Expr | undefined,
  loop: Loop,
  { pieces, taken }: Context,
): { readonly when?: Expr; readonly lets: readonly StmtOf<'let'>[] } {
  if (when === undefined) return { lets: [] }
  if (pieces === undefined || usesIndex(when, loop.index) || contains(when, ({ kind }) => kind === 'element'))
    return { when, lets: [] }
  const known = pieces.conditions.get(hashOf(when))
  if (known !== undefined) return { when: known, lets: [] }
  const local: ExprOf<'local'> = { kind: 'local', type: 'bool', name: freshName('stored', taken) }
  pieces.conditions.set(hashOf(when), local)
  return { when: local, lets: [{ kind: 'let', name: local.name, type: 'bool', value: when }] }
}

export const loopStoreStatement: PassStatement<LoopStore> = {
  meets: false,
  isConditional: ({ when }) => when !== undefined,
  defines: () => [],
  places: (s) => [s.loop.length, ...s.indices, ...whenOf(s)],
  values: ({ value }) => [value],
  mapValues: (s, map) => ({ ...s, value: map(s.value) }),
  verify(s, check) {
    const element = (e: Expr) => check.element(s.loop.index, e)
    for (const at of s.indices) if (element(at) !== 'i32') check.fail('an index is no integer')
    check.store(s.tensor, s.indices.length, element(s.value))
    if (s.when !== undefined && element(s.when) !== 'bool') check.fail('a condition is no boolean')
    if (s.when !== undefined && s.run !== undefined && usesIndex(s.when, s.loop.index)) check.fail('a chunk is stored in part')
  },
  describe: (s) => {
    const how = s.run === undefined ? 'element by element' : 'in chunks'
    return `store ${s.tensor}[${s.indices.map(printExpr).join(', ')}] = ${printExpr(s.value)} ${how}`
  },
}
