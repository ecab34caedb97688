/**
 * Proof that nested loops run through memory element by element. The offset of an access is a sum of products in which the innermost index has
 * the coefficient 1, the next one the length of the innermost loop, and so on. A tensor of which each group is such a run has one axis in place
 * of several. Used by the pass that merges the axes of a group (src/schedule/rows/group_rows.ts).
 *
 *     x[b, g, i, c] at ((b * G + g) * K + i) * S + c, loops i < K and c < S    base b * G * K * S + g * K * S, then c, i
 */
import { call, i32, index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { RowAxis, TensorParam } from '../../ir/kernel.js'
import { axisNames, rowMajor } from '../../ir/layout.js'
import { multiply, type Polynomial, polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { freeNames, substitute } from '../../ir/walk.js'
import { offsetOf, sizeOf } from '../access/access.js'
import type { Loop } from '../normalise/normal.js'
import { contains, dropZeros, substituteDims } from '../normalise/rewrite.js'

/** A run of consecutive elements. */
export interface GroupRun {
  /** Offset of its first element. */
  readonly base: Expr
  /** The innermost first. */
  readonly loops: readonly Loop[]
}

/** The run of all elements of loops, at an offset over their indices; undefined if they are not consecutive in some order of the loops. */
export function runThrough(offset: Expr, loops: readonly Loop[]): GroupRun | undefined {
  const steps = new Map(loops.map((loop) => [loop, stepOf(offset, loop.index)]))
  const ordered: Loop[] = []
  let stride = polynomialOf(i32(1))
  while (ordered.length < loops.length) {
    const next = loops.find((loop) => {
      const own = steps.get(loop)
      return !ordered.includes(loop) && own !== undefined && samePolynomial(own, stride)
    })
    if (next === undefined) return undefined
    ordered.push(next)
    stride = multiply(stride, polynomialOf(next.length))
  }
  const first = new Map(loops.map(({ index }): [string, Expr] => [index, i32(0)]))
  return { base: dropZeros(substitute(offset, first)), loops: ordered }
}

/** An axis in place of several: its dimension, and its extent over the dimensions of the op. */
export interface MergedAxis {
  readonly dim: string
  readonly extent: Expr
}

/** A tensor with one axis for all loops of a group, and the axes of groups that its elements depend on. */
export interface GroupedTensor {
  readonly tensor: TensorParam
  readonly axes: readonly RowAxis[]
}

/**
 * The tensor with a merged axis.
 * @param base offset of a group's first element
 * @returns undefined if the base depends on more than the axes of groups
 */
export function groupTensor(
  tensor: TensorParam,
  base: Expr,
  groups: readonly RowAxis[],
  { dim, extent }: MergedAxis,
  fixed: Readonly<Record<string, number>>,
): GroupedTensor | undefined {
  const free = freeNames(base)
  const axes = groups.filter(({ index }) => free.has(index))
  if (axes.length < free.size || contains(base, ({ kind }) => kind === 'load' || kind === 'fold')) return undefined
  const dims = [...axes.map((axis) => axis.dim), dim]
  const first = [...axes.map(({ index }) => indexVar(index)), i32(0)]
  const plain = { ...tensor, dims, layout: rowMajor(dims) }
  const overOp = (e: Expr): Polynomial => polynomialOf(substituteDims(e, new Map([[dim, extent]])))
  const isPlain =
    samePolynomial(overOp(offsetOf(plain, first, fixed)), polynomialOf(base)) &&
    samePolynomial(overOp(sizeOf(plain, fixed)), polynomialOf(sizeOf(tensor, fixed)))
  if (isPlain) return { tensor: plain, axes }
  const names = axisNames(dims)
  const own = new Map(axes.map(({ index }, i): [string, Expr] => [index, indexVar(names[i] ?? index)]))
  const layout = {
    name: `groups of ${tensor.layout.name}`,
    axes: names,
    offset: call('add', substitute(base, own), indexVar(names.at(-1) ?? dim)),
    size: sizeOf(tensor, fixed),
  }
  return { tensor: { ...tensor, dims, layout }, axes }
}
