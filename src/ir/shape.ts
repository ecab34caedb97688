/**
 * Extents of graph tensors: products of named dimensions and a constant, written `b*s` or `3*h*d`.
 * Kept as sorted monomials, so equal extents are equal texts and a view can be checked without numbers. What passes put side by side may be
 * as long as several extents together: such a sum is a dimension whose name says what it is, `(2*g+h)`, and whoever has numbers for the
 * dimensions in it has its own.
 */
import { usageError } from '../errors.js'
import { inherited, isInherited, own } from './own.js'

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
      throw usageError('graph.extent', `"${part}" is no dimension: ${inherited.reason}`, { hint: inherited.hint })
    else dims.push(part)
  }
  return { factor, dims: dims.sort() }
}

/** Parses a blank-separated list of extents: `b*s h*d`. The empty text is a scalar's shape. */
export const parseShape = (text: string): Shape => (text.trim() === '' ? [] : text.trim().split(/\s+/).map(parseExtent))

export const printExtent = (extent: Extent): string =>
  [...(extent.factor === 1 && extent.dims.length > 0 ? [] : [String(extent.factor)]), ...extent.dims].join('*')

export const printShape = (shape: Shape): string => shape.map(printExtent).join(' ')

export const multiplyExtents = (shape: Shape): Extent => ({
  factor: shape.reduce((product, extent) => product * extent.factor, 1),
  dims: shape.flatMap((extent) => extent.dims).sort(),
})

export const sameExtent = (a: Extent, b: Extent): boolean => printExtent(a) === printExtent(b)

/** The factors that all extents have. */
export function commonExtent(extents: readonly Extent[]): Extent {
  const [first, ...rest] = extents
  if (first === undefined) return { factor: 1, dims: [] }
  const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))
  return rest.reduce(
    (common, { factor, dims }) => ({ factor: gcd(common.factor, factor), dims: common.dims.filter(takenFrom(dims)) }),
    first,
  )
}

/** An extent without the factors of another, all of which it has. */
export function divideExtent({ factor, dims }: Extent, by: Extent): Extent {
  const isDivided = takenFrom(by.dims)
  return { factor: factor / by.factor, dims: dims.filter((dim) => !isDivided(dim)) }
}

/** Whether a list still has a name, which is taken out of it. */
function takenFrom(names: readonly string[]): (name: string) => boolean {
  const left = [...names]
  return (name) => {
    const at = left.indexOf(name)
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }
}

/** The extent of several, one behind the other. */
export function sumExtents(extents: readonly Extent[]): Extent {
  const common = commonExtent(extents)
  const terms = new Map<string, Extent>()
  for (const extent of extents) {
    const own = divideExtent(extent, common)
    const key = own.dims.join('*')
    terms.set(key, { ...own, factor: own.factor + (terms.get(key)?.factor ?? 0) })
  }
  const [only, ...more] = terms.values()
  if (only === undefined) return { factor: 0, dims: [] }
  const sum = `(${[...terms.values()].map(printExtent).sort().join('+')})`
  return multiplyExtents([common, more.length === 0 ? only : { factor: 1, dims: [sum] }])
}

/** The extents that a dimension is the sum of; undefined for any other dimension. */
export function termsOf(dim: string): readonly Extent[] | undefined {
  if (!dim.startsWith('(')) return undefined
  return split(dim.slice(1, -1), '+').map((term) => {
    const factors = split(term, '*')
    const isNumber = (text: string): boolean => /^[0-9]+$/.test(text)
    return {
      factor: factors.filter(isNumber).reduce((product, text) => product * Number(text), 1),
      dims: factors.filter((text) => !isNumber(text)),
    }
  })
}

/** The parts of a text between separators that stand in no parentheses. */
function split(text: string, by: '+' | '*'): readonly string[] {
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

/** The dimensions that extents depend on: of a sum, those in it. */
export const dimsIn = (shape: Shape): readonly string[] => [
  ...new Set(
    shape.flatMap(({ dims }) =>
      dims.flatMap((dim) => {
        const terms = termsOf(dim)
        return terms === undefined ? [dim] : dimsIn(terms)
      }),
    ),
  ),
]

/** The number of a dimension; undefined where one it depends on has none. */
export function evaluateDim(dim: string, dims: Readonly<Record<string, number>>): number | undefined {
  const terms = termsOf(dim)
  if (terms === undefined) return own(dims, dim)
  const known = dimsIn(terms).every((name) => own(dims, name) !== undefined)
  return known ? terms.reduce((sum, term) => sum + evaluateExtent(term, dims), 0) : undefined
}

/** The extent's number. @throws usage `graph.dim` if a dimension has no value. */
export function evaluateExtent(extent: Extent, dims: Readonly<Record<string, number>>): number {
  return extent.dims.reduce((product, name) => {
    const value = evaluateDim(name, dims)
    if (value === undefined) {
      throw usageError('graph.dim', `dimension ${name} of ${printExtent(extent)} has no value`, {
        hint: `there are ${Object.keys(dims).join(', ') || 'none'}; a graph says what it is usually run with: typical: { ${name}: ... }`,
      })
    }
    return product * value
  }, extent.factor)
}
