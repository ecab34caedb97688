/** Inference and checks of the shapes and types of a graph's nodes, from their operands. The graph's builder calls it for each node. */
import { inTurn, usageError } from '../errors.js'
import { dtypeInfo, isDType, isFloat8 } from '../ir/dtype.js'
import { getOwn } from '../ir/get_own.js'
import type { GraphValue } from '../ir/graph.js'
import { type DTypeRef, printType } from '../ir/kernel.js'
import { printShape, type Shape, sameExtent } from '../ir/shape.js'
import type { TensorDecl } from './types.js'

export const dtypeRef = (type: string): DTypeRef => (isDType(type) ? type : { param: type })

const isInteger = (dtype: DTypeRef): boolean => typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'

/** Storage type of a matmul's result. @throws usage `graph.dtype` */
function resultType(subscripts: string, a: DTypeRef, b: DTypeRef, result: string | undefined): DTypeRef {
  const named = (dtype: DTypeRef): string => (typeof dtype === 'string' ? dtype : dtype.param)
  const refuse = (problem: string, hint: string) => usageError('graph.dtype', `"${subscripts}": ${problem}`, { hint })
  const integer = [a, b].find(isInteger)
  if (integer !== undefined)
    throw refuse(`a factor is stored as ${named(integer)}`, 'factors must be floats or i8: convert it in a separate op')
  const whole = a === 'i8' && b === 'i8'
  const wanted = result === undefined ? undefined : dtypeRef(result)
  const tiny = [a, b].find(isFloat8)
  if (tiny !== undefined && wanted === undefined)
    throw refuse(`a factor is stored as ${tiny}`, "state the type of the result: { result: 'f16' }")
  if (wanted === undefined) {
    if (whole) return 'i32'
    if (named(a) === named(b)) return a
    throw refuse(`the factors are stored as ${named(a)} and ${named(b)}`, "state the type of the result: { result: 'f32' }")
  }
  if (wanted === 'i8' || (wanted !== 'i32' && isInteger(wanted)))
    throw refuse(`sums do not fit ${named(wanted)}`, 'quantise them in an op after the matmul')
  if (wanted === 'i32' && !whole) throw refuse('sums of floats are stored as i32', "write { result: 'f32' }, and round in an op")
  return wanted
}

interface Product {
  readonly dtype: DTypeRef
  readonly shape: Shape
  readonly subscripts: { readonly a: readonly string[]; readonly b: readonly string[]; readonly out: readonly string[] }
}

/** Type, shape and axes of a matmul; undefined if a factor is unknown. @throws usage `graph.matmul`, `graph.dtype` */
export function productOf(
  subscripts: string,
  a: GraphValue | undefined,
  b: GraphValue | undefined,
  result: string | undefined,
): Product | undefined {
  const match = /^([\w ]+), ([\w ]+) -> ([\w ]+)$/.exec(subscripts)
  const [sa, sb, so] = [match?.[1], match?.[2], match?.[3]].map((part) => part?.split(' ') ?? [])
  if (sa === undefined || sb === undefined || so === undefined || match === null) {
    throw usageError('graph.matmul', `"${subscripts}" is not a matmul`, { hint: "write 'm k, n k -> m n'" })
  }
  expectPaired(subscripts, [sa, sb, so])
  const axes: Record<string, Shape[number]> = {}
  for (const [names, factor] of [
    [sa, a],
    [sb, b],
  ] as const) {
    if (factor === undefined) continue
    const { shape } = factor
    if (names.length !== shape.length) {
      throw usageError(
        'graph.matmul',
        `"${subscripts}": ${names.join(' ')} has ${names.length} axes, the tensor "${printShape(shape)}" has ${shape.length}`,
      )
    }
    names.forEach((axis, i) => {
      const extent = shape[i]
      if (extent === undefined) return
      const known = getOwn(axes, axis)
      if (known !== undefined && !sameExtent(known, extent)) {
        throw usageError(
          'graph.matmul',
          `"${subscripts}": axis ${axis} has extents ${printShape([known])} and ${printShape([extent])}`,
        )
      }
      axes[axis] = extent
    })
  }
  if (a === undefined || b === undefined) return undefined
  const shape = so.flatMap((axis) => getOwn(axes, axis) ?? [])
  const dtype = resultType(subscripts, a.dtype, b.dtype, result)
  return { dtype, shape, subscripts: { a: sa, b: sb, out: so } }
}

/** Checks that every axis is in at least two tensors, and once in each. @throws usage `graph.matmul` */
function expectPaired(subscripts: string, tensors: readonly [readonly string[], readonly string[], readonly string[]]): void {
  const [a, b, out] = tensors
  for (const axes of tensors) {
    const twice = axes.find((axis, i) => axes.indexOf(axis) < i)
    if (twice === undefined) continue
    throw usageError('graph.matmul', `"${subscripts}": ${axes.join(' ')} names axis ${twice} twice`, {
      hint: 'take the diagonal in a separate op',
    })
  }
  const alone = [...a, ...b].find((axis) => tensors.filter((axes) => axes.includes(axis)).length < 2)
  if (alone !== undefined) {
    throw usageError('graph.matmul', `"${subscripts}": axis ${alone} is in one of the operands only and not in the result`, {
      hint: 'sum it in a separate op',
    })
  }
  const nowhere = out.find((axis) => !a.includes(axis) && !b.includes(axis))
  if (nowhere !== undefined)
    throw usageError('graph.matmul', `"${subscripts}": axis ${nowhere} of the result is in neither operand`)
}

/**
 * Binds dimensions and type parameters of an op's input to those of the value.
 * @throws usage `graph.rank`, `graph.shape`, `graph.layout`, `graph.dtype`
 */
export function bindInput(
  op: string,
  name: string,
  decl: TensorDecl,
  actual: GraphValue,
  dims: Record<string, Shape[number]>,
  types: Record<string, DTypeRef>,
): void {
  const wanted = decl.dims === '' ? [] : decl.dims.split(' ')
  if (wanted.length !== actual.shape.length) {
    throw usageError('graph.rank', `${op}: ${name} is "${decl.dims}", the value given is "${printShape(actual.shape)}"`, {
      hint: 'use view() to give it another shape',
    })
  }
  inTurn([
    ...wanted.map((dim, i) => () => {
      const extent = actual.shape[i]
      if (extent === undefined) return
      const bound = getOwn(dims, dim)
      if (bound !== undefined && !sameExtent(bound, extent)) {
        throw usageError(
          'graph.shape',
          `${op}: dimension ${dim} of ${name} is ${printShape([extent])}, but ${printShape([bound])} elsewhere`,
        )
      }
      dims[dim] = extent
    }),
    () => {
      const layout = decl.layout?.name ?? 'row'
      if (layout !== actual.layout)
        throw usageError('graph.layout', `${op}: ${name} must be in layout ${layout}, the value given is in ${actual.layout}`)
    },
    () => bindType(op, name, decl, actual, types),
  ])
}

/** Binds a type parameter, or checks a storage type against the declared one. */
function bindType(op: string, name: string, decl: TensorDecl, actual: GraphValue, types: Record<string, DTypeRef>): void {
  const ref = dtypeRef(decl.type)
  if (typeof ref === 'string') {
    if (ref !== actual.dtype)
      throw usageError('graph.dtype', `${op}: ${name} must be ${ref}, the value given is ${printType(actual.dtype)}`, {
        hint: 'convert it in a separate op, or declare the input with a type parameter',
      })
    return
  }
  const known = getOwn(types, ref.param)
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(actual.dtype)) {
    throw usageError(
      'graph.dtype',
      `${op}: storage type ${ref.param} of ${name} is ${printType(actual.dtype)}, but ${printType(known)} elsewhere`,
    )
  }
  types[ref.param] = actual.dtype
}
