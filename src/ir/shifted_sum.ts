/**
 * Sums of shifted exponentials, such as those of a softmax: `sum(exp(e - top) * w)` with `top` the maximum of `e`. They are the only sums that
 * depend on another reduction of their row and still follow from parts of it: a part shifts by its own maximum, and the sums of parts are scaled
 * before they are added ("Online normalizer calculation for softmax", Milakov and Gimelshein 2018). Groups of a matmul's columns are such parts
 * (src/fuse/product/reduced_rows.ts), and the chunks of long rows (src/schedule/rows/one_pass.ts).
 */
import { call, f32, local } from './build.js'
import type { Expr, ExprOf } from './expr.js'
import { hashOf } from './expr_hash.js'
import type { StmtOf } from './kernel.js'
import { freeNames, mapOperands, substitute, withoutSpans } from './walk.js'

type Reduce = StmtOf<'reduce'>

/** A sum whose terms are shifted by a maximum of the row. */
export interface Shifted {
  /** The maximum. */
  readonly top: string
  /** The exponential of a term; without a weight, the term itself. */
  readonly exponential: ExprOf<'call'>
  /** The difference in its exponent. */
  readonly difference: ExprOf<'call'>
}

/**
 * Takes a sum apart.
 * @param tops maxima of the same row by name
 * @param known names of reductions of the row
 * @returns undefined unless exactly one factor of the terms is an exponential shifted by the maximum of its own exponent
 */
export function shiftedSum(sum: Reduce, tops: ReadonlyMap<string, Reduce>, known: ReadonlySet<string>): Shifted | undefined {
  if (sum.monoid !== 'sum') return undefined
  const reads = (expr: Expr): boolean => [...freeNames(expr)].some((name) => known.has(name))
  const exponential = dependentFactor(sum.value, reads)
  if (exponential?.kind !== 'call' || exponential.fn !== 'exp') return undefined
  const difference = dependentFactor(exponential.args[0], reads)
  if (difference?.kind !== 'call' || difference.fn !== 'sub') return undefined
  // A factor of the exponent that differs from column to column would not be that of the part's maximum.
  if (perColumn(exponential.args[0], difference, sum.index)) return undefined
  const [element, shift] = difference.args
  const top = shift?.kind === 'local' ? tops.get(shift.name) : undefined
  if (element === undefined || top === undefined || reads(element)) return undefined
  const isOwn =
    hashOf(withoutSpans(element)) === hashOf(withoutSpans(substitute(top.value, new Map([[top.index, indexOf(sum)]]))))
  return isOwn ? { top: top.name, exponential, difference } : undefined
}

const indexOf = (sum: Reduce): Expr => ({ kind: 'index', type: 'i32', name: sum.index })

/** The only factor of a product that reads reductions of the row; the expression itself if it is no product. */
function dependentFactor(expr: Expr | undefined, reads: (expr: Expr) => boolean): Expr | undefined {
  if (expr?.kind !== 'call') return expr
  const [a, b, c] = expr.args
  if (expr.fn === 'mul' && a !== undefined && b !== undefined && reads(a) !== reads(b))
    return dependentFactor(reads(a) ? a : b, reads)
  if (expr.fn === 'div' && b !== undefined && !reads(b)) return dependentFactor(a, reads)
  // A term under a condition is that term, or 0.
  const isNothing = (other: Expr | undefined): boolean => other?.kind === 'const' && other.value === 0
  if (expr.fn === 'select' && a !== undefined && !reads(a) && isNothing(c)) return dependentFactor(b, reads)
  return expr
}

/** True if anything around the difference depends on the column. */
function perColumn(exponent: Expr | undefined, difference: Expr, column: string): boolean {
  const rest = exponent === undefined ? undefined : replaced(exponent, difference, f32(0))
  return rest === undefined || freeNames(rest).has(column)
}

/** The expression with one of its nodes replaced. */
export function replaced(expr: Expr, node: Expr, by: Expr): Expr {
  if (expr === node) return by
  return mapOperands(expr, (operand) => replaced(operand, node, by))
}

/**
 * The term of one part in the sum over parts. Where the maximum of a part is that of the row, even an infinite one, its sum counts as it is.
 * @param part the sum of the part
 * @param top its maximum
 */
export function scaledPart({ top: name, exponential, difference }: Shifted, part: Expr, top: Expr): Expr {
  const whole = local(name)
  const scale = replaced(exponential, difference, call('sub', top, whole))
  const below = call('select', call('eq', top, f32(Number.NEGATIVE_INFINITY)), f32(0), call('mul', part, scale))
  return call('select', call('eq', top, whole), part, below)
}
