/**
 * Scale of a computed operand: a factor of each element that is constant over its row and depends on sums over that row. A norm, for example,
 * divides its elements by the root of a mean square. A sum of products can be multiplied by it at the end, so that a row is read once:
 *
 *     sum over k of (x[k] * inverse * gamma[k]) * w[k]  =  inverse * sum over k of (x[k] * gamma[k]) * w[k]
 */
import { call } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { type LoopStore, type Reduction, rowExprs } from '../../schedule/normalise/normal.js'
import { type Pass, type PassRow, type Step, statementsOf } from '../../schedule/normalise/passes.js'
import { isKnown, varies } from './row_polynomial.js'

export interface RowScale {
  /** The sums, of f32. */
  readonly sums: readonly Reduction[]
  /** Rows that the elements and the terms of the sums are computed from. */
  readonly rows: readonly PassRow[]
  /** Steps that are no pass: values computed from the sums. */
  readonly after: readonly Exclude<Step, { readonly kind: 'pass' }>[]
  readonly scale: Expr
  /** The store of an element without its row's scale. */
  readonly store: LoopStore
  /** Set if elements are read as distances from the row's first element, and have parts that all rows share. */
  readonly anchored?: {
    readonly anchor: Expr
    /** Parts that all rows share, each with its factor, a value of the row. */
    readonly common: readonly { readonly factor: Expr; readonly value: Expr }[]
    /** Tensors that these parts are read from. */
    readonly tensors: readonly string[]
  }
}

/** An expression as a product of the row's scale and the rest. */
interface Split {
  readonly scale?: Expr
  readonly rest?: Expr
}

/**
 * @param before steps that precede the pass that computes the elements
 * @returns undefined if elements are no such product, or if the scale of their row depends on anything but sums of terms that
 *   depend on one element alone
 */
export function rowScaleOf(before: readonly Step[], last: Pass): RowScale | undefined {
  const passes = before.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  const after = before.flatMap((step) => (step.kind === 'pass' ? [] : [step]))
  const [folding] = passes
  const [store] = statementsOf(last, 'loopStore')
  if (folding === undefined || passes.length !== 1 || store === undefined || store.when !== undefined) return undefined
  const sums = statementsOf(folding, 'reduce')
  if (sums.length !== folding.statements.length || folding.loop.index !== last.loop.index) return undefined
  if (sums.some(({ monoid, type }) => monoid !== 'sum' || type !== 'f32')) return undefined
  if (after.some(({ kind }) => kind !== 'let')) return undefined

  const known = new Set([...sums.map(({ name }) => name), ...after.flatMap((step) => (step.kind === 'let' ? [step.name] : []))])
  const { scale, rest } = splitOf(store.value, known, last.loop.index) ?? {}
  if (scale === undefined || rest === undefined) return undefined
  const rows = [...new Map([...folding.rows, ...last.rows].map((row) => [row.name, row])).values()]
  const elements = [rest, ...sums.map(({ value }) => value), ...rows.flatMap(rowExprs)]
  if (rows.some(({ kind }) => kind === 'scanned') || elements.some((expr) => isKnown(expr, known))) return undefined
  return { sums, rows, after, scale, store: { ...store, value: rest } }
}

/** @returns undefined if it is no product of a part that varies along the row and one that depends on the names */
function splitOf(expr: Expr, known: ReadonlySet<string>, index: string): Split | undefined {
  if (!isKnown(expr, known)) return { rest: expr }
  if (!varies(expr, index)) return { scale: expr }
  if (expr.kind !== 'call') return undefined
  const [a, b] = expr.args.map((arg) => splitOf(arg, known, index))
  if (a === undefined) return undefined
  if (expr.fn === 'neg') return a.rest && { ...a, rest: call('neg', a.rest) }
  if (b === undefined) return undefined
  if (expr.fn === 'mul') return { ...joined('scale', a.scale, b.scale), ...joined('rest', a.rest, b.rest) }
  // Division of the scale by a varying part would leave an element without a numerator: only elements are divided.
  if (expr.fn !== 'div' || a.rest === undefined) return undefined
  if (b.rest !== undefined && b.scale !== undefined) return undefined
  if (b.scale === undefined) return b.rest && { ...a, rest: call('div', a.rest, b.rest) }
  return { rest: a.rest, scale: a.scale === undefined ? call('div', one, b.scale) : call('div', a.scale, b.scale) }
}

const one: Expr = { kind: 'const', type: 'f32', value: 1 }

const joined = <K extends keyof Split>(key: K, a: Expr | undefined, b: Expr | undefined): Split =>
  a === undefined ? (b === undefined ? {} : { [key]: b }) : { [key]: b === undefined ? a : call('mul', a, b) }
