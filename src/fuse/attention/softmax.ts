/**
 * Reading a softmax off the row program between two products. The rule is algebra, not a list of names: everything that depends on all
 * keys is either the maximum of a score, or a sum over keys of `exp(score - shift)`; the weights are that exponential times something that
 * is the same for the whole row. Then sums can be carried over tiles of keys, and what remains is one number a row to divide by.
 *
 *   top = max_j t(j), total = sum_j exp(t(j) - top), weights exp(t(j) - top) / (total + exp(sink[h] - top))
 *   makes  score t(j), denominator total + exp(sink[h] - top)
 */
import { call, constant, f32, index, local } from '../../ir/build.js'
import { isSameForm } from '../../ir/canonical.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import { hiddenBelow } from '../../ir/meaning.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { Written } from './written.js'

export interface Softmax {
  /** A score as an expression of the row's indices and of the index `loop`, with loads of the product. */
  readonly score: Expr
  readonly loop: string
  /** Of the locals `total` and `top`. */
  readonly denominator: Expr
  /** Where the weight of `loop` is stored. */
  readonly places: readonly Expr[]
}

/** Why a row program is no softmax that can be carried over tiles of keys. */
export class NoSoftmax extends Error {}

/** A reduction of the row, with everything before it written out. */
interface Reduction {
  readonly name: string
  readonly monoid: string
  /** Of the index `loop` of the store. */
  readonly value: Expr
}

/** @throws NoSoftmax */
export function softmaxOf(kernel: Kernel): Softmax {
  const store = kernel.body.find((stmt): stmt is StmtOf<'storeRow'> => stmt.kind === 'storeRow')
  if (store === undefined) throw new NoSoftmax('nothing between the two products works on rows')
  const { reductions, weight } = writtenOut(kernel, store)
  const loop = store.index
  const { exponent, over } = factors(weight, loop)
  const { score, shift } = shiftedScore(exponent, loop)
  return {
    score,
    loop,
    denominator: denominatorOf(reductions, score, shift, over, loop),
    places: [...store.rows, index(loop)],
  }
}

/** The stored weight and the reductions it needs as expressions of the row's indices, the store's loop and the names of reductions. */
function writtenOut(
  kernel: Kernel,
  store: StmtOf<'storeRow'>,
): { readonly reductions: readonly Reduction[]; readonly weight: Expr } {
  const written = new Written()
  const reductions: Reduction[] = []
  for (const stmt of kernel.body) {
    switch (stmt.kind) {
      case 'let':
        written.scalar(stmt.name, written.out(stmt.value))
        break
      case 'row':
        written.row(stmt)
        break
      case 'reduce': {
        if (!isSameForm(stmt.length, store.length)) throw new NoSoftmax('it reduces another axis than that of the keys')
        const value = written.out(substitute(stmt.value, new Map([[stmt.index, index(store.index)]])))
        reductions.push({ name: stmt.name, monoid: stmt.monoid, value })
        break
      }
      case 'storeRow':
        if (stmt === store && stmt.when === undefined) break
        throw new NoSoftmax('it stores more than the weights')
      default:
        throw new NoSoftmax(`a row of scores goes through a ${stmt.kind}, which cannot be carried over tiles of keys`)
    }
  }
  return { reductions, weight: written.out(store.value) }
}

const dependsOn = (expr: Expr, loop: string): boolean => freeNames(expr).has(loop)

/** The weight as `exp(exponent) / over`, of which only the exponent depends on the key. */
function factors(weight: Expr, loop: string): { readonly exponent: Expr; readonly over: Expr | undefined } {
  const above: Expr[] = []
  const below: Expr[] = []
  const take = (expr: Expr, onTop: boolean): void => {
    const masked = onTop ? maskedFactor(expr, loop) : undefined
    const [a, b] = expr.kind === 'call' ? expr.args : []
    if (masked !== undefined) take(masked, onTop)
    else if (expr.kind === 'call' && (expr.fn === 'mul' || expr.fn === 'div') && a && b) {
      take(a, onTop)
      take(b, expr.fn === 'mul' ? onTop : !onTop)
    } else (onTop ? above : below).push(expr)
  }
  take(weight, true)
  const [exponential, ...more] = above.filter((factor) => dependsOn(factor, loop))
  if (below.some((factor) => dependsOn(factor, loop))) throw new NoSoftmax('weights are divided by something that differs by key')
  if (exponential === undefined) throw new NoSoftmax('weights do not depend on the key')
  if (more.length > 0) throw new NoSoftmax('weights are changed key by key behind the softmax')
  const exponent = exponentIn(exponential)
  if (exponent === undefined)
    throw new NoSoftmax('a weight is no exponential of a score over something that is the same for the whole row')
  const product = (list: readonly Expr[]): Expr | undefined =>
    list.length === 0 ? undefined : list.reduce((left, right) => call('mul', left, right))
  const top = product(above.filter((factor) => factor !== exponential))
  const bottom = product(below)
  const over = top === undefined ? bottom : call('div', bottom ?? { kind: 'const', type: 'f32', value: 1 }, top)
  return { exponent, over }
}

const negativeInfinity = constant('f32', Number.NEGATIVE_INFINITY)
const isZero = (expr: Expr): boolean => expr.kind === 'const' && Number(expr.value) === 0

/** `condition ? x / y : 0` of a condition on the key as `(condition ? x : 0) / y`; undefined for what is no such quotient or product. */
function maskedFactor(expr: Expr, loop: string): Expr | undefined {
  const [condition, kept, other] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  if (condition === undefined || kept === undefined || other === undefined || !dependsOn(condition, loop)) return undefined
  const isKept = isZero(other)
  const product = isKept ? kept : isZero(kept) ? other : undefined
  if (product?.kind !== 'call' || (product.fn !== 'mul' && product.fn !== 'div')) return undefined
  const [a, b] = product.args
  if (a === undefined || b === undefined) return undefined
  const zero = constant('f32', 0)
  const masked = (factor: Expr): Expr => call('select', condition, isKept ? factor : zero, isKept ? zero : factor)
  return dependsOn(a, loop) || product.fn === 'div' ? call(product.fn, masked(a), b) : call('mul', a, masked(b))
}

/**
 * The exponent of what is written as an exponential, as a power of a number, or as one of them where a condition holds and 0 elsewhere: that
 * is the exponential of -Infinity.
 */
function exponentIn(expr: Expr): Expr | undefined {
  if (expr.kind !== 'call') return undefined
  const [a, b, c] = expr.args
  if (expr.fn === 'exp') return a
  if (expr.fn === 'pow' && a?.kind === 'const' && Number(a.value) > 0 && b !== undefined)
    return call('mul', b, f32(Math.log(Number(a.value))))
  if (expr.fn !== 'select' || a === undefined || b === undefined || c === undefined) return undefined
  const [kept, other] = [exponentIn(b), exponentIn(c)]
  if (kept !== undefined && isZero(c)) return call('select', a, kept, negativeInfinity)
  if (other !== undefined && isZero(b)) return call('select', a, negativeInfinity, other)
  return undefined
}

/** The exponent as `score - shift`, of which only the score depends on the key. */
function shiftedScore(exponent: Expr, loop: string): { readonly score: Expr; readonly shift: Expr | undefined } {
  const shifts: Expr[] = []
  const score = peel(exponent, loop, shifts)
  const shift = shifts.length === 0 ? undefined : shifts.reduce((left, right) => call('add', left, right))
  return { score, shift }
}

/**
 * What is left of a sum without the terms that reductions of the row are in; these join the list, with the other sign. Other terms that
 * are the same for the whole row stay with the score, as its maximum has them too.
 */
function peel(expr: Expr, loop: string, shifts: Expr[]): Expr {
  const [a, b, c] = expr.kind === 'call' ? expr.args : []
  if (expr.kind === 'call' && (expr.fn === 'mul' || expr.fn === 'div') && a !== undefined && b !== undefined) {
    // A factor of the row, as a temperature, is one of the score and of the shift.
    const [of, by] = dependsOn(a, loop) ? [a, b] : [b, a]
    if (dependsOn(by, loop) || (expr.fn === 'div' && of !== a)) return expr
    const inner: Expr[] = []
    const scaled = (each: Expr): Expr => (of === a ? call(expr.fn, each, by) : call(expr.fn, by, each))
    const left = peel(of, loop, inner)
    shifts.push(...inner.map(scaled))
    return left === of ? expr : scaled(left)
  }
  if (expr.kind === 'call' && expr.fn === 'select' && a !== undefined && b !== undefined && c !== undefined) {
    // What hides a key hides it whatever is taken off.
    if (isHidden(c)) return call('select', a, peel(b, loop, shifts), c)
    return isHidden(b) ? call('select', a, b, peel(c, loop, shifts)) : expr
  }
  if (expr.kind !== 'call' || (expr.fn !== 'sub' && expr.fn !== 'add') || a === undefined || b === undefined) return expr
  const isShift = (term: Expr): boolean => !dependsOn(term, loop) && hasLocal(term)
  if (isShift(b)) {
    shifts.push(expr.fn === 'sub' ? b : call('neg', b))
    return peel(a, loop, shifts)
  }
  if (expr.fn === 'add' && isShift(a)) {
    shifts.push(call('neg', a))
    return peel(b, loop, shifts)
  }
  const [left, right] = [
    dependsOn(a, loop) ? peel(a, loop, shifts) : a,
    dependsOn(b, loop) && expr.fn === 'add' ? peel(b, loop, shifts) : b,
  ]
  return left === a && right === b ? expr : call(expr.fn, left, right)
}

const isHidden = (expr: Expr): boolean =>
  expr.kind === 'const' && expr.type === 'f32' && Number(expr.value) === Number.NEGATIVE_INFINITY

/** With masks of either kind alike: what hides a key is -Infinity. */
const hidden = (expr: Expr): Expr =>
  rewrite(expr, (node) =>
    node.kind === 'const' && node.type === 'f32' && Number(node.value) <= hiddenBelow ? negativeInfinity : node,
  )

const hasLocal = (expr: Expr): boolean => {
  let found = false
  rewrite(expr, (node) => {
    found ||= node.kind === 'local'
    return node
  })
  return found
}

/** What the sum of `exp(score - top)` times values is divided by, from what the body divides its own weights by. */
function denominatorOf(
  reductions: readonly Reduction[],
  score: Expr,
  shift: Expr | undefined,
  over: Expr | undefined,
  loop: string,
): Expr {
  if (hasLocal(score)) throw new NoSoftmax('a score depends on other scores of its row')
  const top = local('top')
  const total = local('total')
  const isTop = (expr: Expr | undefined): boolean => expr !== undefined && isSameForm(expr, top)
  const values = new Map<string, Expr>()
  const inTops = (expr: Expr | undefined): Expr | undefined => (expr === undefined ? undefined : substitute(expr, values))
  /** The sums that are exactly of the weights' own exponentials: dividing by one of them needs no shift. */
  const own = new Set<string>()
  for (const { name, monoid, value } of reductions) {
    if (monoid === 'max') {
      // A maximum of something else may still be a shift that cancels; it has no value here.
      if (isSameForm(hidden(value), hidden(score))) values.set(name, top)
      continue
    }
    const exponent = exponentIn(value)
    if (monoid !== 'sum' || exponent === undefined)
      throw new NoSoftmax(`a row of scores is reduced by ${monoid} of something that is neither a score nor its exponential`)
    const { score: summed, shift: by } = shiftedScore(exponent, loop)
    if (!isSameForm(summed, score)) throw new NoSoftmax('it sums other exponentials than those it weighs values by')
    if ((by === undefined && shift === undefined) || (by !== undefined && shift !== undefined && isSameForm(by, shift)))
      own.add(name)
    const shifted = inTops(by)
    values.set(name, isTop(shifted) ? total : call('mul', total, exponential(top, shifted)))
  }
  if (over?.kind === 'local' && own.has(over.name)) return total
  const [divisor, moved] = [inTops(over), inTops(shift)]
  const back = isTop(moved) ? undefined : exponential(moved, top)
  const whole = divisor === undefined ? back : back === undefined ? divisor : call('mul', divisor, back)
  const made = whole ?? { kind: 'const', type: 'f32', value: 1 }
  const unknown = [...freeNames(made)].find((name) => reductions.some((each) => each.name === name) && !values.has(name))
  if (unknown !== undefined)
    throw new NoSoftmax('the maximum is of something else than what is exponentiated, and weights do not cancel it')
  return made
}

/** `exp(a - b)`, where nothing counts as 0. */
function exponential(a: Expr | undefined, b: Expr | undefined): Expr {
  if (b === undefined) return call('exp', a ?? { kind: 'const', type: 'f32', value: 0 })
  return call('exp', a === undefined ? call('neg', b) : call('sub', a, b))
}
