/**
 * The largest elements of a row inside an element, such as the best two of each group of a row. Each of them takes two reductions by the
 * element's thread: the largest value that ranks after those before it, and its first index. Both are stored as rows, so that the
 * next rank reads them. A few are cheap this way; more are ranked by a warp, in an op whose row indices name the group.
 */
import type { Node } from 'ts-morph'
import { call, f32, i32, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { substitute } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import type { Lowering, Place, Value } from '../static/values.js'
import { refuseInOrder } from './in_order.js'

/** Most elements that a single thread ranks. */
const most = 8
/** Index of no element. */
const nowhere = i32(0x7fffffff)

const hint =
  'make it an op whose row indices name the group, (t, g) => ({ best: topK(2, e, (j) => x(t, g, j)).values(0) }), and read its output'

/** The loop of the element that contains a topK; undefined at row level. @throws refusal in a branch, or in a loop inside an element */
export function rankingLoop(node: Node, place: Place): Place['loop'] {
  if (place.level === 'element' && place.loop === undefined)
    reject('row', node, 'a topK cannot be made in a branch, or in a loop inside an element', hint)
  return place.loop
}

/** Refuses a count larger than one thread ranks. */
export function checkCount(count: Expr, node: Node): void {
  if (count.kind !== 'const' || Number(count.value) > most)
    reject('row', node, `a topK inside an element ranks 1 to ${most} elements, a number that is written out`, hint)
}

/** Arguments of a topK, and the names of its rows. */
interface Ranked {
  readonly count: number
  readonly length: Expr
  /** The index of `value`. */
  readonly index: string
  readonly value: Expr
  readonly names: { readonly values: string; readonly indices: string }
}

/** Lowers a topK inside an element to rows over the elements, and returns the values and indices that an element reads from them. */
export function rankInElement(
  { count, length, index, value, names }: Ranked,
  of: NonNullable<Place['loop']>,
  node: Node,
  lowering: Lowering,
): { readonly values: Value; readonly indices: Value } {
  refuseInOrder(value, 'topK', node, lowering)
  const row = (wanted: string, monoid: 'max' | 'min', element: (at: string, i: string) => Expr): Expr => {
    const [name, at, i] = [lowering.unique(wanted), lowering.unique(index), lowering.unique(of.index)]
    const folded = element(at, i)
    const { type } = folded
    const reduced: Expr = { kind: 'fold', type, monoid, length, index: at, value: folded }
    lowering.emit({ kind: 'row', name, type, length: of.length, index: i, value: reduced })
    return { kind: 'element', type, row: name, index: indexVar(of.index) }
  }
  const values: Expr[] = []
  const indices: Expr[] = []
  for (let rank = 0; rank < count; rank++) {
    const [above, before] = [values[rank - 1], indices[rank - 1]]
    const moved = (expr: Expr, at: string, i: string): Expr =>
      substitute(
        expr,
        new Map([
          [index, indexVar(at)],
          [of.index, indexVar(i)],
        ]),
      )
    // A NaN is neither equal to nor below any value.
    const isLeft =
      above === undefined || before === undefined
        ? call('eq', value, value)
        : call('or', call('lt', value, above), call('and', call('eq', value, above), call('gt', indexVar(index), before)))
    const best = row(names.values, 'max', (at, i) => moved(call('select', isLeft, value, f32(Number.NEGATIVE_INFINITY)), at, i))
    const isBest = call('and', isLeft, call('eq', value, best))
    values.push(best)
    indices.push(row(names.indices, 'min', (at, i) => moved(call('select', isBest, indexVar(index), nowhere), at, i)))
  }
  const found = indices.map((at) => call('select', call('eq', at, nowhere), i32(-1), at))
  return { values: { kind: 'list', items: values }, indices: { kind: 'list', items: found } }
}

/** Reads an item of a list at a constant index, or selects one by a computed index. */
export function itemOf(items: readonly Expr[], at: Expr, node: Node): Expr {
  const [first, ...others] = items
  if (first === undefined) throw new Error('internal: a list without items')
  if (at.kind !== 'const')
    return others.reduce((other, item, i) => call('select', call('eq', at, i32(i + 1)), item, other), first)
  return (
    items[Number(at.value)] ??
    reject('shape', node, `${items.length} elements are ranked, there is no element ${quote(node)}`, 'indices count from 0')
  )
}
