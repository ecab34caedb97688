/**
 * Sizes of an export: products of dimensions, or expressions of them where a layout pads. Such an expression is a layout's count from the manifest,
 * with a value's extents substituted for its axes.
 */
import { type Count, evaluateCount, namesOf, renameCount } from '../ir/facts/facts.js'
import { dimsIn, type Extent, evaluateExtent, quotientOf, termsOf } from '../ir/shape.js'

export type Size = Extent | Count

export const isExtent = (size: Size): size is Extent => typeof size === 'object' && 'factor' in size

export const constant = (factor: number): Extent => ({ factor, dims: [] })

/** An extent as a count of its dimensions. */
function countOfExtent({ factor, dims }: Extent): Count {
  const counts = dims.map((dim): Count => {
    const [terms, quotient] = [termsOf(dim), quotientOf(dim)]
    if (quotient !== undefined) return folded(['idiv', countOfExtent(quotient.of), countOfExtent(quotient.by)])
    return terms === undefined ? dim : terms.map(countOfExtent).reduce((sum, term): Count => ['add', sum, term])
  })
  return counts.reduce((product, count) => (product === 1 ? count : folded(['mul', count, product])), factor as Count)
}

/** Substitutes extents for the axes of a count; a number if all are known. */
export function placed(count: Count, extents: Readonly<Record<string, Extent>>): Size {
  const renamed = renameCount(count, (axis) => {
    const extent = extents[axis]
    return extent === undefined ? undefined : countOfExtent(extent)
  })
  if (renamed === undefined) throw new Error(`internal: the sizes of ${namesOf(count).join(', ')} are unknown`)
  const size = folded(renamed)
  return typeof size === 'number' ? constant(size) : size
}

/** A size times a constant. */
export const times = (size: Size, factor: number): Size =>
  isExtent(size) ? { ...size, factor: size.factor * factor } : factor === 1 ? size : folded(['mul', size, factor])

/** Folds constant operations, and drops those that change nothing. */
function folded(count: Count): Count {
  if (typeof count !== 'object') return count
  const [operation, ...operands] = count
  const [a, b] = operands.map(folded)
  if (a === undefined || b === undefined) return count
  if (typeof a === 'number' && typeof b === 'number') return evaluateCount([operation, a, b], {}) ?? count
  if (operation === 'mul') return a === 1 ? b : b === 1 ? a : [operation, a, b]
  if (operation === 'add') return a === 0 ? b : b === 0 ? a : [operation, a, b]
  // Rounding up is written n + 32 - 1.
  if (operation === 'sub' && typeof b === 'number' && typeof a === 'object' && a[0] === 'add' && typeof a[2] === 'number')
    return folded(['add', a[1] ?? 0, a[2] - b])
  return [operation, a, b]
}

/** Value of a size. @throws usage `graph.dim` if a dimension has no value */
export function evaluateSize(size: Size, dims: Readonly<Record<string, number>>): number {
  if (isExtent(size)) return evaluateExtent(size, dims)
  const value = evaluateCount(size, dims)
  if (value === undefined) throw new Error(`internal: the sizes of ${namesOf(size).join(', ')} are unknown`)
  return value
}

/** Dimensions that sizes depend on. */
export const dimsOf = (sizes: readonly Size[]): readonly string[] => [
  ...new Set(sizes.flatMap((size) => (isExtent(size) ? dimsIn([size]) : namesOf(size)))),
]
