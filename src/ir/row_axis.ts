/**
 * Extents of row axes. Most span one dimension. The axis of horizontally fused ops spans one dimension of each, concatenated; an axis merged from
 * several (src/schedule/normalise/merge_axes.ts) spans their product.
 */
import { call, dim as dimOf } from './build.js'
import type { Expr } from './expr.js'
import type { RowAxis } from './kernel.js'

type Spans = Pick<RowAxis, 'dim' | 'also' | 'times'>

/** Dimensions that an axis spans, in order. */
export const dimsOf = ({ dim, also = [], times = [] }: Spans): readonly string[] => [dim, ...also, ...times]

/**
 * Extent of an axis, as an expression.
 * @param of the extent of one dimension, itself by default
 */
export function extentOf(axis: Spans, of: (dim: string) => Expr = dimOf): Expr {
  const [first, ...others] = dimsOf(axis).map(of)
  const fn = isMerged(axis) ? 'mul' : 'add'
  return others.reduce((all, extent) => call(fn, all, extent), first ?? of(axis.dim))
}

/** Extent of an axis, as a number. @param of the number of one dimension */
export const countOf = (axis: Spans, of: (dim: string) => number): number =>
  dimsOf(axis)
    .map(of)
    .reduce((all, extent) => (isMerged(axis) ? all * extent : all + extent))

/** True if an axis stands for several, so that its extent may exceed the range of an index. */
export const isMerged = ({ times = [] }: Pick<RowAxis, 'times'>): boolean => times.length > 0

/** An axis as text: `z < h + g`, `p < h * w`. */
export const printAxis = (axis: RowAxis): string => `${axis.index} < ${dimsOf(axis).join(isMerged(axis) ? ' * ' : ' + ')}`
