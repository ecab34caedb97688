/**
 * Size of an expression's results on random values: their root mean square, and its growth with the length of their row.
 * A sum of products grows as the root of its length. A row divided by its own root mean square has size 1 for any input;
 * one divided by its norm shrinks. Used for attention (attention.ts), where a rounding of a key moves a score by its own size.
 */
import type { Expr } from '../expr.js'
import type { IntrinsicName } from '../intrinsics.js'
import { visitUp } from '../walk.js'
import { countOf } from './counts.js'
import type { Size } from './facts.js'

/** A result: its size, its sign, and its derivative by the local in question. */
interface Sized {
  readonly size: Size
  readonly isPositive: boolean
  readonly isConstant: boolean
  /** Size of the derivative by the local in question; undefined if the result does not depend on it. */
  readonly slope?: Size | undefined
}

/** A size: its root mean square, its exponent of the root of the length, and its degree in the random inputs. */
export const sizeOf = (rms: number, roots = 0, degree = 0): Size => ({ rms, roots, degree })
const unit = sizeOf(1)

/** Size of a product of independent terms. */
export const productSize = (a: Size, b: Size): Size => sizeOf(a.rms * b.rms, a.roots + b.roots, a.degree + b.degree)
const quotient = (a: Size, b: Size): Size => sizeOf(a.rms / Math.max(b.rms, 1e-30), a.roots - b.roots, a.degree - b.degree)
const power = ({ rms, roots, degree }: Size, exponent: number): Size =>
  sizeOf(rms ** exponent, roots * exponent, degree * exponent)

/** Size of a sum of independent terms. For long rows only the fastest growing term counts. */
function together(a: Size, b: Size): Size {
  if (a.rms === 0 || b.rms === 0) return a.rms === 0 ? b : a
  if (a.roots === b.roots) return sizeOf(Math.hypot(a.rms, b.rms), a.roots, Math.max(a.degree, b.degree))
  return a.roots > b.roots ? a : b
}

/** Size of a sum of correlated terms. */
const added = (a: Size, b: Size): Size => (a.roots === b.roots ? { ...together(a, b), rms: a.rms + b.rms } : together(a, b))

/** The larger of two sizes. */
export function largerSize(a: Size, b: Size): Size {
  if (a.rms === 0 || b.rms === 0) return a.rms === 0 ? b : a
  if (a.roots === b.roots) return { ...(a.rms >= b.rms ? a : b), degree: Math.max(a.degree, b.degree) }
  return a.roots > b.roots ? a : b
}

const slopes = (slope: (slope: Size) => Size, of: Sized | undefined): Size | undefined =>
  of?.slope === undefined ? undefined : slope(of.slope)

const bothSlopes = (a: Size | undefined, b: Size | undefined): Size | undefined =>
  a === undefined || b === undefined ? (a ?? b) : added(a, b)

/** Functions with a derivative of at most about 1 and results of size 1. */
const levelled: ReadonlySet<IntrinsicName> = new Set(['tanh', 'erf'])

/** Known sizes of the values that an expression reads. */
export interface Known {
  readonly input: (tensor: string) => Size
  /** Typical magnitude. */
  readonly attr: (name: string) => number
  /** Elements of a row. */
  readonly length: Expr
  /** A local of known size, for which slopes are computed. */
  readonly local?: { readonly name: string; readonly size: Size }
}

/** Size of an expression, and of its derivative by the known local. */
export function sizesOf(expr: Expr, known: Known): { readonly size: Size; readonly slope?: Size | undefined } {
  const found = new Map<Expr, Sized>()
  visitUp(expr, (node) =>
    found.set(
      node,
      sizedNode(node, known, (operand) => found.get(operand) ?? plain(unit)),
    ),
  )
  return found.get(expr) ?? { size: unit }
}

const plain = (size: Size, isPositive = false, isConstant = false): Sized => ({ size, isPositive, isConstant })

function sizedNode(expr: Expr, known: Known, of: (operand: Expr) => Sized): Sized {
  const isRow = (length: Expr): boolean =>
    JSON.stringify(countOf(length, new Map()) ?? null) === JSON.stringify(countOf(known.length, new Map()))
  // Sums grow with the length of a row; nothing is known of any other number of elements.
  if (expr.type === 'i32') return isRow(expr) ? plain(sizeOf(1, 2), true) : ofInteger(expr, of)
  switch (expr.kind) {
    case 'const': {
      const value = typeof expr.value === 'number' && Number.isFinite(expr.value) ? expr.value : 0
      return plain(sizeOf(Math.abs(value)), value >= 0, true)
    }
    case 'attr':
      return plain(sizeOf(Math.abs(known.attr(expr.name))), known.attr(expr.name) >= 0)
    case 'load':
      return plain(known.input(expr.tensor))
    case 'local':
      return expr.name === known.local?.name ? { ...plain(known.local.size), slope: unit } : plain(unit)
    case 'fold': {
      const value = of(expr.value)
      if (expr.monoid !== 'sum' || !isRow(expr.length)) return value
      return { ...value, size: productSize(value.size, sizeOf(1, value.isPositive ? 2 : 1)), isConstant: false }
    }
    case 'call':
      return called(expr.fn, expr.args.map(of), expr.args[0] === expr.args[1])
    default:
      return plain(unit)
  }
}

/** Bits extracted from packed integers take any value they can hold; nothing is known of an index. */
function ofInteger(expr: Expr, of: (operand: Expr) => Sized): Sized {
  if (expr.kind === 'const' && typeof expr.value === 'number') return plain(sizeOf(Math.abs(expr.value)), expr.value >= 0, true)
  if (expr.kind !== 'call') return plain(unit)
  const args = expr.args.map(of)
  const [mask] = args.flatMap(({ isConstant, size }) => (isConstant ? [size.rms] : []))
  if (expr.fn === 'bitAnd' && mask !== undefined) return plain(sizeOf(mask / Math.sqrt(3)), true)
  return arithmetic.has(expr.fn) ? called(expr.fn, args, expr.args[0] === expr.args[1]) : plain(unit)
}

const arithmetic: ReadonlySet<IntrinsicName> = new Set(['add', 'sub', 'mul', 'neg', 'minimum', 'maximum', 'select'])

function called(fn: IntrinsicName, args: readonly Sized[], isSame: boolean): Sized {
  const [a = plain(unit), b = a, c = b] = args
  const both = { isPositive: a.isPositive && b.isPositive, isConstant: a.isConstant && b.isConstant }
  switch (fn) {
    case 'add':
    case 'sub':
      return {
        ...both,
        isPositive: fn === 'add' && both.isPositive,
        size: together(a.size, b.size),
        slope: bothSlopes(a.slope, b.slope),
      }
    case 'mul':
    case 'square': {
      const isSquare = fn === 'square' || isSame
      return {
        isPositive: isSquare || both.isPositive,
        isConstant: both.isConstant,
        size: productSize(a.size, b.size),
        slope: bothSlopes(
          slopes((slope) => productSize(slope, b.size), a),
          slopes((slope) => productSize(slope, a.size), b),
        ),
      }
    }
    case 'div': {
      const size = quotient(a.size, b.size)
      const byDivisor = slopes((slope) => productSize(slope, quotient(size, b.size)), b)
      return {
        ...both,
        size,
        slope: bothSlopes(
          slopes((slope) => quotient(slope, b.size), a),
          byDivisor,
        ),
      }
    }
    case 'minimum':
    case 'maximum':
      return either(a, b, fn === 'maximum' ? a.isPositive || b.isPositive : both.isPositive)
    case 'select':
      return either(b, c, b.isPositive && c.isPositive)
    case 'neg':
    case 'floor':
    case 'ceil':
    case 'trunc':
    case 'round':
    case 'toFloat':
      return { ...a, isPositive: fn !== 'neg' && a.isPositive }
    case 'abs':
      return { ...a, isPositive: true }
    case 'sqrt':
      return asPower(a, 0.5)
    case 'rsqrt':
      return asPower(a, -0.5)
    default:
      return { isPositive: fn === 'exp' || fn === 'exp2', isConstant: a.isConstant, size: unit, slope: ofFunction(fn, a) }
  }
}

/** A constant alternative does not affect the size: the number that masks a score is huge. */
function either(a: Sized, b: Sized, isPositive: boolean): Sized {
  const slope = a.slope === undefined || b.slope === undefined ? (a.slope ?? b.slope) : largerSize(a.slope, b.slope)
  const size = a.isConstant === b.isConstant ? largerSize(a.size, b.size) : a.isConstant ? b.size : a.size
  return { size, isPositive, isConstant: a.isConstant && b.isConstant, slope }
}

function asPower(a: Sized, exponent: number): Sized {
  const size = power({ ...a.size, rms: Math.max(a.size.rms, 1e-30) }, exponent)
  return { ...a, size, isPositive: true, slope: slopes((slope) => productSize(slope, quotient(size, a.size)), a) }
}

/** A levelled function changes no more than its argument; for any other function a bound is assumed. */
const ofFunction = (fn: IntrinsicName, a: Sized): Size | undefined =>
  levelled.has(fn) ? a.slope : slopes((slope) => largerSize(slope, productSize(slope, a.size)), a)
