/**
 * Recognises a softmax in the row program between two matmuls. The rule is algebra, not a list of names. Every value that depends on all keys is
 * either the maximum of a score, or a sum over keys of `exp(score - shift)`. The weights are that exponential times a row-uniform factor. Sums can
 * then be accumulated over tiles of keys, and one divisor per row remains.
 *
 *   top = max_j t(j), total = sum_j exp(t(j) - top), weights exp(t(j) - top) / (total + exp(sink[h] - top))
 *   makes  score t(j), denominator total + exp(sink[h] - top)
 *
 * Values of a row that are stored beside the weights, such as log(total) + top, become expressions of `total` and `top` in the same way.
 */
import { call, index, local } from '../../ir/build.js'
import { isSameForm } from '../../ir/canonical.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { dependsOn, exponentIn, hasLocal, maskedFactor, shiftedScore, withMasksInfinite } from './exponent.js'
import { Inliner } from './written.js'

export interface Softmax {
  /** Score as an expression of the row's indices and of the index `loop`, with loads of the matmul. */
  readonly score: Expr
  readonly loop: string
  /** Expression of the locals `total` and `top`. */
  readonly denominator: Expr
  /** Indices at which the weight of `loop` is stored. */
  readonly places: readonly Expr[]
  /** Stored values of a row: expressions of the locals `total` and `top`. */
  readonly rows: readonly StmtOf<'store'>[]
}

/** Reason why a row program is not a softmax that can be carried over tiles of keys. */
export class NoSoftmax extends Error {}

/** A reduction of the row, with everything before it inlined. */
interface Reduction {
  readonly name: string
  readonly monoid: string
  /** Expression of the index `loop` of the store. */
  readonly value: Expr
}

/** @throws NoSoftmax */
export function softmaxOf(kernel: Kernel): Softmax {
  const store = kernel.body.find((stmt): stmt is StmtOf<'storeRow'> => stmt.kind === 'storeRow')
  if (store === undefined) throw new NoSoftmax('no op there reduces a row')
  const { reductions, weight, rows } = writtenOut(kernel, store)
  const loop = store.index
  const { exponent, over } = factors(weight, loop)
  const { score, shift } = shiftedScore(exponent, loop)
  const sums = sumsOf(reductions, score, shift, loop)
  return {
    score,
    loop,
    denominator: denominatorOf(sums, shift, over),
    places: [...store.rows, index(loop)],
    rows: rows.map((row) => ({ ...row, value: known(substitute(row.value, sums.values), sums.others) })),
  }
}

/** The stored weight and the reductions it needs as expressions of the row's indices, the store's loop and the names of reductions. */
function writtenOut(
  kernel: Kernel,
  store: StmtOf<'storeRow'>,
): { readonly reductions: readonly Reduction[]; readonly weight: Expr; readonly rows: readonly StmtOf<'store'>[] } {
  const written = new Inliner()
  const reductions: Reduction[] = []
  const rows: StmtOf<'store'>[] = []
  let weight: Expr | undefined
  for (const stmt of kernel.body) {
    switch (stmt.kind) {
      case 'let':
        written.define(stmt.name, written.inline(stmt.value))
        break
      case 'row':
        written.defineRow(stmt)
        break
      case 'reduce': {
        if (!isSameForm(stmt.length, store.length)) throw new NoSoftmax('it reduces another axis than the keys')
        const value = written.inline(substitute(stmt.value, new Map([[stmt.index, index(store.index)]])))
        // Parentheses make the name unique: a body may call anything `top`.
        const name = `(${stmt.name})`
        written.define(stmt.name, { kind: 'local', type: stmt.type, name })
        reductions.push({ name, monoid: stmt.monoid, value })
        break
      }
      case 'storeRow':
        if (stmt === store && stmt.when === undefined) {
          weight = written.inline(store.value)
          break
        }
        throw new NoSoftmax(
          stmt === store ? 'the store of the weights is conditional' : 'an op stores something besides the weights',
        )
      case 'store':
        if (stmt.when !== undefined) throw new NoSoftmax('the store of a value of a row is conditional')
        rows.push({ ...stmt, value: written.inline(stmt.value) })
        break
      default:
        throw new NoSoftmax(`a ${stmt.kind} over a row of scores cannot be computed tile by tile`)
    }
  }
  return { reductions, weight: weight ?? written.inline(store.value), rows }
}

/** The weight as `exp(exponent) / over`, where only the exponent depends on the key. */
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
  if (below.some((factor) => dependsOn(factor, loop))) throw new NoSoftmax('weights are divided by a value that differs by key')
  if (exponential === undefined) throw new NoSoftmax('weights do not depend on the key')
  if (more.length > 0)
    throw new NoSoftmax(
      'weights are exponentials times another factor that differs by key; multiply the values by a factor that is the same for all queries',
    )
  const exponent = exponentIn(exponential)
  if (exponent === undefined)
    throw new NoSoftmax('a weight is not the exponential of a score over a value that is uniform over the row')
  const product = (list: readonly Expr[]): Expr | undefined =>
    list.length === 0 ? undefined : list.reduce((left, right) => call('mul', left, right))
  const top = product(above.filter((factor) => factor !== exponential))
  const bottom = product(below)
  const over = top === undefined ? bottom : call('div', bottom ?? { kind: 'const', type: 'f32', value: 1 }, top)
  return { exponent, over }
}

const top = local('top')
const total = local('total')
const isTop = (expr: Expr | undefined): boolean => expr !== undefined && isSameForm(expr, top)

/** The reductions of a row by name. */
interface Sums {
  /** Expressions of the locals `total` and `top`. */
  readonly values: ReadonlyMap<string, Expr>
  /** Reductions that sum exactly the exponentials of the weights: the shift cancels in a division by one of them. */
  readonly own: ReadonlySet<string>
  /** Reductions that `top` and `total` do not express, with the reason. They are allowed as shifts that cancel. */
  readonly others: ReadonlyMap<string, string>
}

function sumsOf(reductions: readonly Reduction[], score: Expr, shift: Expr | undefined, loop: string): Sums {
  if (hasLocal(score)) throw new NoSoftmax('a score depends on other scores of its row')
  const values = new Map<string, Expr>()
  const own = new Set<string>()
  const others = new Map<string, string>()
  for (const { name, monoid, value } of reductions) {
    if (monoid === 'max') {
      // The maximum of another value is only allowed as a shift that cancels.
      if (isSameForm(withMasksInfinite(value), withMasksInfinite(score))) values.set(name, top)
      else others.set(name, 'the maximum is not that of the exponentiated scores, and the weights do not cancel it')
      continue
    }
    const exponent = exponentIn(value)
    if (monoid !== 'sum' || exponent === undefined) {
      others.set(name, `a row of scores is reduced by ${monoid} of a value that is neither a score nor its exponential`)
      continue
    }
    const { score: summed, shift: by } = shiftedScore(exponent, loop)
    if (!isSameForm(summed, score)) throw new NoSoftmax('it sums other exponentials than those of its weights')
    if ((by === undefined && shift === undefined) || (by !== undefined && shift !== undefined && isSameForm(by, shift)))
      own.add(name)
    const shifted = by === undefined ? undefined : substitute(by, values)
    const lost = reasonIn(shifted, others)
    if (lost !== undefined) {
      others.set(name, lost)
      continue
    }
    values.set(name, isTop(shifted) ? total : call('mul', total, exponential(top, shifted)))
  }
  return { values, own, others }
}

/** Divisor of the sum of `exp(score - top)` times values, from the divisor of the body's own weights. */
function denominatorOf({ values, own, others }: Sums, shift: Expr | undefined, over: Expr | undefined): Expr {
  const inTops = (expr: Expr | undefined): Expr | undefined => (expr === undefined ? undefined : substitute(expr, values))
  // Weights divided by a multiple of their own sum: the shift cancels, independent of its value.
  const cancels = over !== undefined && isMultipleOf(over, own)
  if (cancels) return known(substitute(over, new Map([...values, ...[...own].map((name) => [name, total] as const)])), others)
  const [divisor, by] = [inTops(over), inTops(shift)]
  const back = isTop(by) ? undefined : exponential(by, top)
  const whole = divisor === undefined ? back : back === undefined ? divisor : call('mul', divisor, back)
  const made = whole ?? { kind: 'const', type: 'f32', value: 1 }
  const lost = reasonIn(made, others)
  if (lost === undefined) return made
  // The weights and every term of their divisor contain the same shift once: it cancels, independent of its value.
  if (over === undefined || shift === undefined) throw new NoSoftmax(lost)
  const terms = reshifted(over, shift, (score) => (score === undefined ? unshifted : call('mul', call('exp', score), unshifted)))
  if (!isMultipleOf(terms, new Set([...own, unshifted.name]))) throw new NoSoftmax(lost)
  const moved = reshifted(over, shift, (score) => exponential(score, top))
  return known(substitute(moved, new Map([...values, ...[...own].map((name) => [name, total] as const)])), others)
}

/** Stands for `exp(-shift)` in the divisor of the weights. */
const unshifted = { kind: 'local', type: 'f32', name: '(unshifted)' } as const

/** Replaces each `exp(score - shift)`. */
const reshifted = (expr: Expr, shift: Expr, made: (score: Expr | undefined) => Expr): Expr =>
  rewrite(expr, (node) => {
    const [exponent] = node.kind === 'call' && node.fn === 'exp' ? node.args : []
    const [a, b] = exponent?.kind === 'call' ? exponent.args : []
    if (exponent?.kind !== 'call' || a === undefined) return node
    if (exponent.fn === 'neg' && isSameForm(a, shift)) return made(undefined)
    return exponent.fn === 'sub' && b !== undefined && isSameForm(b, shift) ? made(a) : node
  })

/** @throws NoSoftmax for a name without a value */
function known(expr: Expr, reasons: ReadonlyMap<string, string>): Expr {
  const lost = reasonIn(expr, reasons)
  if (lost !== undefined) throw new NoSoftmax(lost)
  return expr
}

/** True if an expression is proportional to the sums with these names: every term has one of them once, and no divisor has one. */
function isMultipleOf(expr: Expr, sums: ReadonlySet<string>): boolean {
  if (expr.kind === 'local') return sums.has(expr.name)
  const [a, b] = expr.kind === 'call' ? expr.args : []
  if (expr.kind !== 'call' || a === undefined || b === undefined) return false
  const isFree = (part: Expr): boolean => ![...freeNames(part)].some((name) => sums.has(name))
  if (expr.fn === 'add' || expr.fn === 'sub') return isMultipleOf(a, sums) && isMultipleOf(b, sums)
  if (expr.fn === 'div') return isMultipleOf(a, sums) && isFree(b)
  return expr.fn === 'mul' && ((isMultipleOf(a, sums) && isFree(b)) || (isFree(a) && isMultipleOf(b, sums)))
}

/** Reason why an expression has no value: that of a name in it. */
function reasonIn(expr: Expr | undefined, reasons: ReadonlyMap<string, string>): string | undefined {
  const names = expr === undefined ? [] : [...freeNames(expr)]
  return names.map((name) => reasons.get(name)).find((reason) => reason !== undefined)
}

/** `exp(a - b)`, where undefined counts as 0. */
function exponential(a: Expr | undefined, b: Expr | undefined): Expr {
  if (b === undefined) return call('exp', a ?? { kind: 'const', type: 'f32', value: 0 })
  return call('exp', a === undefined ? call('neg', b) : call('sub', a, b))
}
