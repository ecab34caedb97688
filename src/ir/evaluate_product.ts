/**
 * Reference evaluator of a matmul kernel, by its definition and in double precision: the prologues, the sums, and then the epilogue.
 */
import { emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor, position } from './evaluate.js'
import type { DTypeRef, Kernel, TensorParam } from './kernel.js'
import { factorParam, type MatmulFactor, type MatmulKernel, type ReducedRows } from './product.js'

type Numbers = Readonly<Record<string, number>>
type Tensors = Readonly<Record<string, HostTensor>>

const extentOf = (dims: Numbers, name: string): number => dims[name] ?? 0

/** Data of a factor, with its stride along each outer axis of the matmuls and along k. */
interface Strided {
  readonly data: ArrayLike<number>
  readonly strides: readonly number[]
  readonly step: number
}

/**
 * The same kernel with its computed factors as inputs, and their values rounded to the type in which the factor is multiplied.
 * A device is compared with this, since its factors are 16 bits wide whether they are stored or not.
 * @param evaluated results of a factor's body; in double precision by default
 */
export function withFactors(
  kernel: MatmulKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
  round: (dtype: DTypeRef, values: ArrayLike<number>) => ArrayLike<number>,
  evaluated: (prologue: Kernel) => Tensors = (prologue) => evaluateKernel(prologue, inputs, dims, attrs),
): { readonly kernel: MatmulKernel; readonly inputs: Tensors } {
  const made: Record<string, HostTensor> = {}
  const stored: TensorParam[] = []
  const asStored = (factor: MatmulFactor): MatmulFactor => {
    const { tensor, prologue } = factor
    const computed = prologue === undefined ? undefined : evaluated(prologue)[tensor]
    if (computed === undefined) return factor
    const param = factorParam(kernel, factor)
    made[tensor] = { data: round(param.dtype, computed.data), shape: computed.shape }
    stored.push({ ...param, access: 'in' })
    return { tensor }
  }
  const [first, ...others] = kernel.products
  const a = asStored(kernel.a)
  const products = [
    { ...first, b: asStored(first.b) },
    ...others.map((product) => ({ ...product, b: asStored(product.b) })),
  ] as const
  return { kernel: { ...kernel, a, products, tensors: [...stored, ...kernel.tensors] }, inputs: { ...inputs, ...made } }
}

/** Perturbs a sum of products, given the sum of their magnitudes. */
export type StraySum = (sum: number, magnitude: number) => number

/** Outputs by name; a matmul kernel updates none of its inputs. @param stray applies to each sum, which is exact without it */
export function evaluateMatmul(
  kernel: MatmulKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
  stray?: StraySum,
): Record<string, HostTensor> {
  const outer = [...kernel.batch, kernel.m, kernel.n]
  const shape = outer.map((name) => extentOf(dims, name))
  const k = extentOf(dims, kernel.k)
  const strided = (factor: MatmulFactor): Strided => {
    const { tensor, prologue } = factor
    const { dims: axes } = factorParam(kernel, factor)
    const computed = prologue === undefined ? inputs : evaluateKernel(prologue, inputs, dims, attrs)
    const { data, shape: extents } = computed[tensor] ?? { data: [], shape: [] }
    // If the last element is in bounds, every other one is.
    if (k > 0 && !shape.includes(0)) {
      const last = axes.map((axis) => extentOf(dims, axis) - 1)
      position(tensor, last, extents)
    }
    const strideOf = (axis: string): number => {
      const place = axes.indexOf(axis)
      return place < 0 ? 0 : extents.slice(place + 1).reduce((size, extent) => size * extent, 1)
    }
    return { data, strides: outer.map(strideOf), step: strideOf(kernel.k) }
  }
  const a = strided(kernel.a)
  const products = kernel.products.map(({ b, accumulator }) => {
    const axes = kernel.epilogue.tensors.find(({ name }) => name === accumulator)?.dims ?? outer
    return [accumulator, { data: multiply(a, strided(b), shape, k, stray), shape }, axes] as const
  })
  const given = Object.fromEntries(products.map(([name, tensor, axes]) => [name, ordered(tensor, outer, axes)]))
  const seen = { ...inputs, ...given }
  const { epilogue, partials, reduced } = kernel
  if (reduced !== undefined) return evaluateReduced(reduced, seen, dims, attrs)
  return { ...evaluateKernel(epilogue, seen, dims, attrs), ...(partials && evaluateKernel(partials, seen, dims, attrs)) }
}

/** Results of the rows of a matmul, by way of those of groups of their columns. */
export function evaluateReduced(
  { partials, rest }: ReducedRows,
  given: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> {
  const all: Record<string, number> = { ...dims }
  for (const [name, extent] of Object.entries(rest.computed ?? {})) all[name] = Number(evaluateExpr(extent, emptyEnv(all)))
  return evaluateKernel(rest, { ...given, ...evaluateKernel(partials, given, all, attrs) }, all, attrs)
}

/** One sum for each element of the matmul, in row-major order. */
function multiply(a: Strided, b: Strided, shape: readonly number[], k: number, stray?: StraySum): Float64Array {
  const along = (at: readonly number[], strides: readonly number[]): number =>
    at.reduce((offset, index, axis) => offset + index * (strides[axis] ?? 0), 0)
  const data = new Float64Array(shape.reduce((size, extent) => size * extent, 1))
  let element = 0
  forEachPoint(shape, (at) => {
    const [fromA, fromB] = [along(at, a.strides), along(at, b.strides)]
    const product = (i: number): number => (a.data[fromA + i * a.step] ?? Number.NaN) * (b.data[fromB + i * b.step] ?? Number.NaN)
    let sum = 0
    for (let i = 0; i < k; i++) sum += product(i)
    let magnitude = 0
    if (stray !== undefined) for (let i = 0; i < k; i++) magnitude += Math.abs(product(i))
    data[element++] = stray === undefined ? sum : stray(sum, magnitude)
  })
  return data
}

/** Transposes a tensor over `axes` to the order of `wanted`. */
function ordered({ data, shape }: HostTensor, axes: readonly string[], wanted: readonly string[]): HostTensor {
  if (axes.every((axis, i) => axis === wanted[i])) return { data, shape }
  const places = wanted.map((axis) => axes.indexOf(axis))
  const strides = places.map((place) => shape.slice(place + 1).reduce((size, extent) => size * extent, 1))
  const extents = places.map((place) => shape[place] ?? 0)
  const moved = new Float64Array(data.length)
  let element = 0
  forEachPoint(extents, (at) => {
    moved[element++] = data[at.reduce((offset, index, axis) => offset + index * (strides[axis] ?? 0), 0)] ?? Number.NaN
  })
  return { data: moved, shape: extents }
}
