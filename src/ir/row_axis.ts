/** Extents of row axes. Most span one dimension; the axis of horizontally fused ops spans one dimension of each, concatenated. */
import { call, dim as dimOf } from './build.js'
import type { Expr } from './expr.js'
import type { RowAxis } from './kernel.js'

/** Dimensions that an axis spans, in order. */
export const dimsOf = ({ dim, also = [] }: Pick<RowAxis, 'dim' | 'also'>): readonly string[] => [dim, ...also]

/**
 * Extent of an axis, as an expression.
 * @param of the extent of one dimension, itself by default
 */
export function extentOf(axis: Pick<RowAxis, 'dim' | 'also'>, of: (dim: string) => Expr = dimOf): Expr {
  const [first, ...others] = dimsOf(axis).map(of)
  return others.reduce((sum, extent) => call('add', sum, extent), first ?? of(axis.dim))
}

/** Extent of an axis, as a number. @param of the number of one dimension */
export const countOf = (axis: Pick<RowAxis, 'dim' | 'also'>, of: (dim: string) => number): number =>
  dimsOf(axis).reduce((sum, dim) => sum + of(dim), 0)

/** An axis as text: `z < h + g`. */
export const printAxis = (axis: RowAxis): string => `${axis.index} < ${dimsOf(axis).join(' + ')}`
