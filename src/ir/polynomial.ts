/**
 * Polynomials of integer expressions: sums of products of atoms, each with a number as its factor. Offsets of layouts are compared in this form, so
 * that the order of sums and products does not matter. An atom is anything but a sum, a difference or a product.
 */
import type { Expr } from './expr.js'
import { termKey } from './linear.js'
import { freeNames } from './walk.js'

/** Sorted keys of the atoms of a product, joined, and the factor; the empty key is the constant. Factors are not zero. */
export type Polynomial = ReadonlyMap<string, number>

const separator = '\n'

const atomsOf = (product: string): readonly string[] => (product === '' ? [] : product.split(separator))

const productOf = (atoms: readonly string[]): string => [...atoms].sort().join(separator)

function sumOf(products: Iterable<readonly [string, number]>): Polynomial {
  const sum = new Map<string, number>()
  for (const [product, factor] of products) {
    const total = (sum.get(product) ?? 0) + factor
    if (total === 0) sum.delete(product)
    else sum.set(product, total)
  }
  return sum
}

/** Product of two polynomials. */
export const multiply = (a: Polynomial, b: Polynomial): Polynomial =>
  sumOf([...a].flatMap(([x, p]) => [...b].map(([y, q]) => [productOf([...atomsOf(x), ...atomsOf(y)]), p * q] as const)))

/** Polynomial of an integer expression. */
export function polynomialOf(expr: Expr): Polynomial {
  if (expr.kind === 'const') return sumOf([['', Number(expr.value)]])
  if (expr.kind === 'call') {
    const [a, b] = expr.args
    if (a !== undefined && b !== undefined) {
      if (expr.fn === 'add') return sumOf([...polynomialOf(a), ...polynomialOf(b)])
      if (expr.fn === 'sub') return sumOf([...polynomialOf(a), ...multiply(sumOf([['', -1]]), polynomialOf(b))])
      if (expr.fn === 'mul') return multiply(polynomialOf(a), polynomialOf(b))
    }
  }
  return sumOf([[termKey(expr), 1]])
}

export const samePolynomial = (a: Polynomial, b: Polynomial): boolean =>
  a.size === b.size && [...a].every(([product, factor]) => b.get(product) === factor)

/**
 * Increase of an integer expression per step of an index.
 * @returns undefined if the index is squared, or occurs anywhere but in sums, differences and products
 */
export function stepOf(expr: Expr, index: string): Polynomial | undefined {
  if (!isArithmeticIn(expr, index)) return undefined
  const key = termKey({ kind: 'index', type: 'i32', name: index })
  const steps: (readonly [string, number])[] = []
  for (const [product, factor] of polynomialOf(expr)) {
    const atoms = atomsOf(product)
    const rest = atoms.filter((each) => each !== key)
    if (rest.length < atoms.length - 1) return undefined
    if (rest.length < atoms.length) steps.push([productOf(rest), factor])
  }
  return sumOf(steps)
}

/** True if an index occurs only in sums, differences and products. */
function isArithmeticIn(expr: Expr, index: string): boolean {
  if (expr.kind === 'index') return true
  if (expr.kind === 'call' && ['add', 'sub', 'mul'].includes(expr.fn)) return expr.args.every((arg) => isArithmeticIn(arg, index))
  return !freeNames(expr).has(index)
}
