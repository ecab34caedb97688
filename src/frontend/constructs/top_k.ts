/**
 * The largest elements of a row in a body: one kernel statement that defines two rows. Inside an element, the element's thread ranks them;
 * more of them than a warp holds are the first elements of a sorted row.
 */
import type { Node } from 'ts-morph'
import { longestSorted } from '../../ir/argsort.js'
import type { Expr } from '../../ir/expr.js'
import { rankedCounts } from '../../ir/top_k.js'
import { freeNames } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import { describe, type Lowering, type Place, scalar, type Value } from '../static/values.js'
import { argumentAt, asIndex } from '../types/scalars.js'
import { expectRow, expectRowLevel, loop } from './rows.js'
import { checkCount, rankInElement, rankingLoop } from './top_k_element.js'
import { rankBySorting } from './top_k_sorted.js'

const example = 'write topK(k, n, (c) => x(m, c))'

/** A constant count; 0 for a dimension, for whose values kernels are compiled. */
const countIn = (count: Expr): number => (count.kind === 'const' ? Number(count.value) : 0)

/** Lowers a call of `topK` to a record of its rows. `wanted` is the author's name for the result, if any. */
export function topK(args: readonly Value[], node: Node, place: Place, lowering: Lowering, wanted = ''): Value {
  const [k, length, of] = args
  if (k === undefined || length === undefined || of === undefined || args.length !== 3)
    return reject('arity', node, `topK takes 3 arguments, ${args.length} given`, example)
  if (place.level === 'branch') expectRowLevel('a topK', node, place)
  const counted = argumentAt(node, 0)
  const count = asIndex(k, counted, 'k of topK:')
  if (count.kind !== 'dim' && count.kind !== 'const') {
    const hint = 'make it a dimension of the op, which an output spans: kernels are compiled for the counts it may have'
    return reject('shape', counted, `k of topK is a dimension or a number, ${quote(counted)} is neither`, hint)
  }
  if (count.kind === 'const' && !(Number(count.value) >= 1 && Number(count.value) <= longestSorted))
    reject('range', counted, `topK(${quote(counted)}, ...) ranks ${quote(counted)} elements`, `ranked are 1 to ${longestSorted}`)
  const around = rankingLoop(node, place)
  const at = argumentAt(node, 2)
  expectRow('topK', of, at, example)
  const extent = asIndex(length, argumentAt(node, 1), 'length of topK:')
  const { index, value } = loop(extent, of, at, place, lowering)
  if (value.type !== 'f32') {
    const hint = value.type === 'bool' ? 'write condition ? 1 : 0' : 'convert it with toFloat'
    return reject('dtype', at, `topK ranks floats, its element is ${describe(scalar(value))}`, hint)
  }
  // A destructured result has no name.
  const name = /^\w+$/.test(wanted) ? wanted : 'top'
  // A ranking that does not depend on the element is computed once, before the row.
  if (around !== undefined && [value, extent].some((expr) => freeNames(expr).has(around.index))) {
    checkCount(count, node)
    const names = { values: `${name}Value`, indices: `${name}Index` }
    const made = rankInElement({ count: countIn(count), length: extent, index, value, names }, around, at, lowering)
    return { kind: 'record', fields: new Map(Object.entries(made)), node }
  }
  const [values, indices] = [lowering.unique(`${name}Values`), lowering.unique(`${name}Indices`)]
  if (countIn(count) > (rankedCounts.at(-1) ?? 0))
    rankBySorting({ count, length: extent, index, value, values, indices }, node, lowering)
  else lowering.emit({ kind: 'topK', name: values, indices, count, length: extent, index, value })
  const row = (of: string, type: 'f32' | 'i32'): Value => ({ kind: 'row', name: of, type, length: count, prefix: true })
  return {
    kind: 'record',
    fields: new Map([
      ['values', row(values, 'f32')],
      ['indices', row(indices, 'i32')],
    ]),
    node,
  }
}
