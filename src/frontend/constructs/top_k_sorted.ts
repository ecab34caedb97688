/**
 * The largest elements of a row, more than a warp holds: the row is sorted, and its first elements are the largest. Keys are negated for descending
 * order, equal elements stay in the order of their indices, and NaN comes last, where the ranking ends.
 */
import type { Node } from 'ts-morph'
import { longestSorted } from '../../ir/argsort.js'
import { call, f32, i32, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { substitute } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import type { Lowering } from '../static/values.js'
import { argumentAt } from '../types/scalars.js'
import { refuseInOrder } from './in_order.js'

/** Arguments of a topK, and the names of its rows. */
interface Ranked {
  readonly count: Expr
  readonly length: Expr
  /** The index of `value`. */
  readonly index: string
  readonly value: Expr
  readonly values: string
  readonly indices: string
}

/** Emits a sorted row, and the rows of its first indices and their values. */
export function rankBySorting({ count, length, index, value, values, indices }: Ranked, node: Node, lowering: Lowering): void {
  refuseInOrder(value, 'topK', node, lowering)
  if (length.kind !== 'dim' && !(length.kind === 'const' && Number(length.value) <= longestSorted))
    reject(
      'shape',
      argumentAt(node, 1),
      `a topK of more than 64 elements sorts its row, whose length is a dimension or a number of at most ${longestSorted}; ${quote(argumentAt(node, 1))} is neither`,
      'rank all of a row, with -Infinity where there is nothing',
    )
  const order = lowering.unique('order', 'derived')
  const key = lowering.unique(index)
  const negated = call('neg', substitute(value, new Map([[index, indexVar(key)]])))
  lowering.emit({ kind: 'argsort', name: order, most: longestSorted, length, index: key, value: negated })
  const row = (name: string, wanted: string, element: (at: Expr) => Expr): void => {
    const own = lowering.unique(wanted)
    const made = element(indexVar(own))
    lowering.emit({ kind: 'row', name, type: made.type, length: count, index: own, value: made })
  }
  row(indices, 'i', (at) => {
    const place: Expr = { kind: 'element', type: 'i32', row: order, index: at }
    const own = substitute(value, new Map([[index, place]]))
    return call('select', call('and', call('lt', at, length), call('eq', own, own)), place, i32(-1))
  })
  row(values, 'i', (at) => {
    const place: Expr = { kind: 'element', type: 'i32', row: indices, index: at }
    const own = substitute(value, new Map([[index, place]]))
    return call('select', call('ge', place, i32(0)), own, f32(Number.NEGATIVE_INFINITY))
  })
}
