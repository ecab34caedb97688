/**
 * Elements of a row as polynomials of their distance from an anchor. Factors are values of the row as a whole, such as its mean; the rest of a term
 * differs among elements.
 */
import { call, f32, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { freeNames, visit } from '../../ir/walk.js'
import { type RowDef, rowExprs } from '../../schedule/normalise/normal.js'
import { contains } from '../../schedule/normalise/rewrite.js'

export interface Term {
  readonly factor: Expr
  /** The part that differs among elements, as a product; empty for a value of the row. */
  readonly rest: readonly Expr[]
  /** Number of distances in the product. */
  readonly degree: number
}

/** Terms with different products. */
export type Polynomial = readonly Term[]

export interface Reading {
  /** The loop's index. */
  readonly index: string
  /** An element of the row. It is read as its distance from the anchor, plus the anchor. */
  readonly anchor: Expr
  /** Name of the anchor's value. */
  readonly name: string
  /** Names of values of the row that depend on reductions. */
  readonly known: ReadonlySet<string>
  readonly rows: readonly RowDef[]
}

/** True if an expression reads one of the names. */
export const isKnown = (expr: Expr, names: ReadonlySet<string>): boolean => [...freeNames(expr)].some((name) => names.has(name))

/** The rows that expressions read, and those that these are computed from, in the order of `rows`. */
export function readBy<Row extends RowDef>(exprs: readonly Expr[], rows: readonly Row[]): readonly Row[] {
  const used = new Set(exprs.flatMap((expr) => [...freeNames(expr)]))
  const direct = rows.filter(({ name }) => used.has(name))
  const deeper = direct.length === 0 ? [] : readBy(direct.flatMap(rowExprs), rows)
  return rows.filter((row) => direct.includes(row) || deeper.includes(row))
}

/** True if an expression depends on no row index: it is the same for all rows. */
export function isVector(expr: Expr, rows: readonly RowDef[], index: string): boolean {
  let shared = true
  visit(expr, (node) => {
    if (node.kind === 'index' && node.name !== index) shared = false
    if (node.kind === 'local') shared = false
    if (node.kind !== 'element') return
    const row = rows.find(({ name }) => name === node.row)
    if (row === undefined || !rowExprs(row).every((each) => isVector(each, rows, row.loop.index))) shared = false
  })
  return shared
}

const one = f32(1)
const isOne = (expr: Expr): boolean => expr.kind === 'const' && expr.value === 1

const times = (a: Expr, b: Expr): Expr => (isOne(a) ? b : isOne(b) ? a : call('mul', a, b))

const keyOf = ({ rest }: Term): string => rest.map(hashOf).sort().join(' ')

/** Adds terms of equal products. */
function collected(terms: readonly Term[]): Polynomial {
  const found = new Map<string, Term>()
  for (const term of terms) {
    const other = found.get(keyOf(term))
    found.set(keyOf(term), other === undefined ? term : { ...other, factor: call('add', other.factor, term.factor) })
  }
  return [...found.values()]
}

const product = (a: Polynomial, b: Polynomial): Polynomial =>
  collected(
    a.flatMap((x) =>
      b.map((y) => ({ factor: times(x.factor, y.factor), rest: [...x.rest, ...y.rest], degree: x.degree + y.degree })),
    ),
  )

const mapped = (terms: Polynomial, f: (factor: Expr) => Expr): Polynomial =>
  terms.map((term) => ({ ...term, factor: f(term.factor) }))

/** A difference. The difference of two values of the row is one factor, computed before it is multiplied. */
function difference(a: Polynomial, b: Polynomial): Polynomial {
  const left = new Map(a.map((term) => [keyOf(term), term]))
  const joint = b.map((term) => {
    const other = left.get(keyOf(term))
    left.delete(keyOf(term))
    return { ...term, factor: other === undefined ? call('neg', term.factor) : call('sub', other.factor, term.factor) }
  })
  return [...left.values(), ...joint]
}

/** @returns undefined if the expression is no polynomial of the distance */
export function polynomialOf(expr: Expr, reading: Reading): Polynomial | undefined {
  const { anchor, name, index, known, rows } = reading
  if (hashOf(expr) === hashOf(anchor)) {
    const distance = call('sub', anchor, local(name))
    return [
      { factor: one, rest: [distance], degree: 1 },
      { factor: local(name), rest: [], degree: 0 },
    ]
  }
  if (!varies(expr, index)) return expr.type === 'f32' ? [{ factor: expr, rest: [], degree: 0 }] : undefined
  const value = computedOf(expr, reading)
  if (value !== undefined && !isVector(expr, rows, index)) return polynomialOf(value, reading)
  if (!contains(expr, isSame(anchor)) && !isKnown(expr, known)) {
    return expr.type === 'f32' ? [{ factor: one, rest: [expr], degree: 0 }] : undefined
  }
  if (expr.kind !== 'call') return undefined
  const [a, b = a] = expr.args.map((arg) => polynomialOf(arg, reading))
  if (a === undefined || b === undefined) return undefined
  switch (expr.fn) {
    case 'neg':
      return mapped(a, (factor) => call('neg', factor))
    case 'add':
      return collected([...a, ...b])
    case 'sub':
      return difference(a, b)
    case 'mul':
    case 'square':
      return product(a, b)
    case 'div': {
      const [divisor] = b
      if (b.length !== 1 || divisor === undefined || divisor.rest.length > 0) return undefined
      return mapped(a, (factor) => call('div', factor, divisor.factor))
    }
    default:
      return undefined
  }
}

/** The value of an element of a row that is computed. */
function computedOf(expr: Expr, { rows, index }: Reading): Expr | undefined {
  if (expr.kind !== 'element' || expr.index.kind !== 'index' || expr.index.name !== index) return undefined
  const row = rows.find(({ name }) => name === expr.row)
  return row?.kind === 'computed' && row.loop.index === index ? row.value : undefined
}

/** The sum over a row. @param sumOf the sum of one product; of 1 if it is undefined */
export function totalOf(terms: Polynomial, sumOf: (value: Expr | undefined) => Expr): Expr {
  const totals = terms.map(({ factor, rest }) => {
    const [first, ...others] = rest
    return times(factor, sumOf(first === undefined ? undefined : others.reduce((a, b) => call('mul', a, b), first)))
  })
  return totals.reduce((a, b) => call('add', a, b))
}

/** True if an expression has different values for the elements of a row. */
export const varies = (expr: Expr, index: string): boolean =>
  contains(expr, (node) => node.kind === 'element' || (node.kind === 'index' && node.name === index))

const isSame = (part: Expr): ((node: Expr) => boolean) => {
  const key = hashOf(part)
  return (node) => node.kind === part.kind && hashOf(node) === key
}
