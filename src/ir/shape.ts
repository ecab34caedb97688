/**
 * Extents of graph tensors: products of named dimensions and a constant, written `b*s` or `3*h*d`.
 * Kept as sorted monomials, so equal extents are equal texts and a view can be checked without numbers.
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

/** The extent's number. @throws usage `graph.dim` if a dimension has no value. */
export function evaluateExtent(extent: Extent, dims: Readonly<Record<string, number>>): number {
  return extent.dims.reduce((product, name) => {
    const value = own(dims, name)
    if (value === undefined) {
      throw usageError('graph.dim', `dimension ${name} of ${printExtent(extent)} has no value`, {
        hint: `there are ${Object.keys(dims).join(', ') || 'none'}; a graph says what it is usually run with: typical: { ${name}: ... }`,
      })
    }
    return product * value
  }, extent.factor)
}
