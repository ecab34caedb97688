/**
 * Extents of graph tensors: products of named dimensions and a constant, written `b*s` or `3*h*d`.
 * Stored as sorted monomials, so that equal extents print equally and a view can be checked without numbers. Concatenations by passes have
 * sums of extents, and splits have quotients. Such a sum or quotient is a dimension named after its formula, `(2*g+h)` or `(h/g)`, and its
 * number follows from those of the dimensions in it.
 */
import { usageError } from '../errors.js'
import { getOwn, inherited, isInherited } from './get_own.js'

export interface Extent {
  readonly factor: number
  /** Sorted; repeated for powers. */
  readonly dims: readonly string[]
}

export type Shape = readonly Extent[]

const token = /^(?:[0-9]+|[A-Za-z][A-Za-z0-9]*)$/

/** Parses `b*s`, `3*h*d`, `7`. @throws usage `graph.extent` for any other text. */
export function parseExtent(text: string): Extent {
  let factor = 1
  const dims: string[] = []
  for (const part of text.split('*')) {
    if (!token.test(part)) {
      throw usageError('graph.extent', `"${text}" is not an extent`, { hint: 'an extent is a product such as b*s or 3*h*d' })
    }
    if (/^[0-9]/.test(part)) factor *= Number(part)
    else if (isInherited(part))
      throw usageError('graph.extent', `"${part}" is not a dimension: ${inherited.reason}`, { hint: inherited.hint })
    else dims.push(part)
  }
  return { factor, dims: dims.sort() }
}

/** Parses a blank-separated list of extents: `b*s h*d`. The empty string is a scalar's shape. */
export const parseShape = (text: string): Shape => (text.trim() === '' ? [] : text.trim().split(/\s+/).map(parseExtent))

export const printExtent = (extent: Extent): string =>
  [...(extent.factor === 1 && extent.dims.length > 0 ? [] : [String(extent.factor)]), ...extent.dims].join('*')

export const printShape = (shape: Shape): string => shape.map(printExtent).join(' ')

/** Product of extents, in which a quotient times its divisor becomes its dividend. */
export function multiplyExtents(shape: Shape): Extent {
  const whole: Extent = {
    factor: shape.reduce((product, extent) => product * extent.factor, 1),
    dims: shape.flatMap((extent) => extent.dims).sort(),
  }
  for (const dim of whole.dims) {
    const quotient = quotientOf(dim)
    if (quotient === undefined) continue
    const others = divideExtent(whole, { factor: 1, dims: [dim] })
    if (sameExtent(commonExtent([others, quotient.by]), quotient.by))
      return multiplyExtents([divideExtent(others, quotient.by), quotient.of])
  }
  return whole
}

export const sameExtent = (a: Extent, b: Extent): boolean => printExtent(a) === printExtent(b)

/** True for one element at every size. */
export const isUnitExtent = ({ factor, dims }: Extent): boolean => factor === 1 && dims.length === 0

/** Greatest common divisor of extents. */
export function commonExtent(extents: readonly Extent[]): Extent {
  const [first, ...rest] = extents
  if (first === undefined) return { factor: 1, dims: [] }
  const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))
  return rest.reduce(
    (common, { factor, dims }) => ({ factor: gcd(common.factor, factor), dims: common.dims.filter(takenFrom(dims)) }),
    first,
  )
}

/** Divides an extent by another whose factors it all has. */
export function divideExtent({ factor, dims }: Extent, by: Extent): Extent {
  const isDivided = takenFrom(by.dims)
  return { factor: factor / by.factor, dims: dims.filter((dim) => !isDivided(dim)) }
}

/** Returns a function that removes a name from the list, true if the list still had it. */
function takenFrom(names: readonly string[]): (name: string) => boolean {
  const left = [...names]
  return (name) => {
    const at = left.indexOf(name)
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }
}

/** Extent of a concatenation. */
export function sumExtents(extents: readonly Extent[]): Extent {
  const common = commonExtent(extents)
  const terms = new Map<string, Extent>()
  for (const extent of extents) {
    const term = divideExtent(extent, common)
    const key = term.dims.join('*')
    terms.set(key, { ...term, factor: term.factor + (terms.get(key)?.factor ?? 0) })
  }
  const [only, ...more] = terms.values()
  if (only === undefined) return { factor: 0, dims: [] }
  const sum = `(${[...terms.values()].map(printExtent).sort().join('+')})`
  return multiplyExtents([common, more.length === 0 ? only : { factor: 1, dims: [sum] }])
}

/** Quotient of an extent and another that divides it. @throws usage `graph.extent` for numbers that do not divide */
export function divideInto(of: Extent, by: Extent): Extent {
  const common = commonExtent([of, by])
  const [rest, divisor] = [divideExtent(of, common), divideExtent(by, common)]
  if (divisor.dims.length === 0 && divisor.factor === 1) return rest
  if (rest.dims.length === 0 && divisor.dims.length === 0) throw noMultiple(of, by, rest.factor, divisor.factor)
  return { factor: 1, dims: [`(${printExtent(rest)}/${printExtent(divisor)})`] }
}

const noMultiple = (of: Extent, by: Extent, number: number, divisor: number) =>
  usageError('graph.extent', `${printExtent(of)} is not a multiple of ${printExtent(by)}: ${number} of ${divisor}`, {
    hint: 'an axis whose elements share those of another must be a multiple of it, as query heads are of key heads',
  })

/** Terms of a dimension that is a sum; undefined for any other dimension. */
export function termsOf(dim: string): readonly Extent[] | undefined {
  if (!dim.startsWith('(') || quotientOf(dim) !== undefined) return undefined
  return split(dim.slice(1, -1), '+').map(factorsIn)
}

/** Dividend and divisor of a dimension that is a quotient; undefined for any other dimension. */
export function quotientOf(dim: string): { readonly of: Extent; readonly by: Extent } | undefined {
  const [of, by] = dim.startsWith('(') ? split(dim.slice(1, -1), '/') : []
  return of === undefined || by === undefined ? undefined : { of: factorsIn(of), by: factorsIn(by) }
}

function factorsIn(text: string): Extent {
  const factors = split(text, '*')
  const isNumber = (factor: string): boolean => /^[0-9]+$/.test(factor)
  return {
    factor: factors.filter(isNumber).reduce((product, factor) => product * Number(factor), 1),
    dims: factors.filter((factor) => !isNumber(factor)),
  }
}

/** Splits a text at separators outside parentheses. */
function split(text: string, by: '+' | '*' | '/'): readonly string[] {
  const parts = ['']
  let depth = 0
  for (const character of text) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (character === by && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}

/** Extents in the formula of a dimension that is a sum or a quotient; undefined for any other dimension. */
export function madeOf(dim: string): readonly Extent[] | undefined {
  const quotient = quotientOf(dim)
  return quotient === undefined ? termsOf(dim) : [quotient.of, quotient.by]
}

/** Dimensions that extents depend on: for a sum or a quotient, those in it. */
export const dimsIn = (shape: Shape): readonly string[] => [
  ...new Set(
    shape.flatMap(({ dims }) =>
      dims.flatMap((dim) => {
        const parts = madeOf(dim)
        return parts === undefined ? [dim] : dimsIn(parts)
      }),
    ),
  ),
]

/** Number of a dimension; undefined if it depends on one without a number. @throws usage `graph.extent` for a quotient with a remainder */
export function evaluateDim(dim: string, dims: Readonly<Record<string, number>>): number | undefined {
  const parts = madeOf(dim)
  if (parts === undefined) return getOwn(dims, dim)
  if (!dimsIn(parts).every((name) => getOwn(dims, name) !== undefined)) return undefined
  const quotient = quotientOf(dim)
  if (quotient === undefined) return parts.reduce((sum, term) => sum + evaluateExtent(term, dims), 0)
  const [number, divisor] = [evaluateExtent(quotient.of, dims), evaluateExtent(quotient.by, dims)]
  if (divisor === 0 ? number !== 0 : number % divisor !== 0) throw noMultiple(quotient.of, quotient.by, number, divisor)
  return divisor === 0 ? 0 : number / divisor
}

/** Number of an extent. @throws usage `graph.dim` if a dimension has no value. */
export function evaluateExtent(extent: Extent, dims: Readonly<Record<string, number>>): number {
  return extent.dims.reduce((product, name) => {
    const value = evaluateDim(name, dims)
    if (value === undefined) {
      throw usageError('graph.dim', `dimension ${name} of ${printExtent(extent)} has no value`, {
        hint: `known are ${Object.keys(dims).join(', ') || 'none'}; state a typical extent in the graph: typical: { ${name}: ... }`,
      })
    }
    return product * value
  }, extent.factor)
}
