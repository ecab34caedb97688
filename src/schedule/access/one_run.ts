/**
 * Elementwise kernels whose tensors are all one run of elements: the value of an element depends on its place in the run alone. A launcher may then
 * walk over one long row in place of many. It does so if rows are not aligned: chunks of the run are, whatever the length of rows is.
 *
 *     for m, c < n: y[m, c] = f(x[m, c])            n = 1001: launched as one row of m * 1001 elements
 *     for m, c < n: y[m, c] = f(x[m, c] + b[c])     no: b begins anew in each row
 */
import { i32 } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import { multiply, polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { isUpdating } from '../../ir/update.js'
import { type ElementwiseProgram, type MappedKernel, onlyPass } from '../mapped.js'
import { type Loop, rowExprs } from '../normalise/normal.js'
import { passValues, statementsOf } from '../normalise/passes.js'
import { contains, dropZeros, rewriteDown, substituteIndex } from '../normalise/rewrite.js'
import { offsetOf } from './access.js'
import { isFull, multiplesOf } from './multiples.js'

/** Dimensions whose product is the length of a row, outermost first, if a launcher may set it to that of all elements; undefined otherwise. */
export function oneRun(mapped: MappedKernel): readonly string[] | undefined {
  const { program, instance, axes, across, generic, vec, split, grouped } = mapped
  const [axis] = axes
  if (program.kind !== 'elementwise' || generic === true || across !== undefined || split !== undefined || grouped !== undefined)
    return undefined
  if (axis === undefined || axes.length > 1 || (axis.also ?? []).length > 0 || isUpdating(instance.kernel)) return undefined
  const { loop } = onlyPass(program)
  const dims = dimsIn(loop.length, instance.dims)
  const isPlain = isOnlyPass(program) && !isFull(loop.length, [vec], multiplesOf(instance.kernel))
  return isPlain && dims !== undefined && dependsOnPlace(mapped, program, axis.index, loop, dims) ? dims : undefined
}

const isOnlyPass = ({ steps, pieces, interval, tuned = [], staging }: ElementwiseProgram): boolean =>
  steps.length === 1 && pieces === undefined && interval === undefined && tuned.length === 0 && staging === undefined

/** Dimensions of a product of different ones; undefined for other lengths, and if one is fixed. */
function dimsIn(length: Expr, fixed: Readonly<Record<string, number>>): readonly string[] | undefined {
  if (length.kind === 'dim') return getOwn(fixed, length.name) === undefined ? [length.name] : undefined
  if (length.kind !== 'call' || length.fn !== 'mul') return undefined
  const parts = length.args.map((part) => dimsIn(part, fixed))
  const dims = parts.flatMap((part) => part ?? [])
  return parts.includes(undefined) || new Set(dims).size < dims.length ? undefined : dims
}

/** True if elements depend on indices through the place in the run alone, and not on its extents. */
function dependsOnPlace(
  { instance: { kernel, dims } }: MappedKernel,
  program: ElementwiseProgram,
  row: string,
  { index, length }: Loop,
  lengths: readonly string[],
): boolean {
  const pass = onlyPass(program)
  const extent = polynomialOf(length)
  const isLength = (e: Expr): boolean => e.kind === 'dim' && lengths.includes(e.name)
  const isRun = ({ tensor: name, indices }: Pick<ExprOf<'load'>, 'tensor' | 'indices'>): boolean => {
    const tensor = kernel.tensors.find((each) => each.name === name)
    if (tensor === undefined) return false
    const offset = offsetOf(tensor, indices, dims)
    if (contains(offset, ({ kind }) => kind === 'local' || kind === 'load' || kind === 'element')) return false
    const [far, near] = [stepOf(offset, row), stepOf(offset, index)]
    const first = substituteIndex(substituteIndex(offset, row, i32(0)), index, i32(0))
    // The step, and the place of the first element, must not change with the length.
    const isFixed =
      near !== undefined && [...near.keys()].every((product) => product === '') && !contains(dropZeros(first), isLength)
    return far !== undefined && isFixed && samePolynomial(far, multiply(near, extent))
  }
  const stores = statementsOf(pass, 'loopStore')
  let isFree = stores.length === pass.statements.length && stores.every((s) => s.when === undefined && isRun(s))
  const loaded = pass.rows.flatMap((each) => (each.kind === 'loaded' ? [each.load] : []))
  for (const expr of [...loaded, ...pass.rows.flatMap(rowExprs), ...passValues(pass)]) {
    rewriteDown(expr, (node) => {
      if (node.kind === 'element' && node.index.kind === 'index' && node.index.name === index) return node
      if (node.kind === 'index') isFree &&= node.name !== row && node.name !== index
      isFree &&= !isLength(node)
      if (node.kind !== 'load') return undefined
      isFree &&= isRun(node)
      return node
    })
  }
  return isFree
}
