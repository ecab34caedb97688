/**
 * Matmul kernels: one or several matmuls with a common left factor, and their epilogue. src/fuse/product derives them from the
 * bodies of a group. Their meaning is the composition of row programs with a sum over `k` between them.
 */
import type { Kernel, TensorParam } from './kernel.js'

/** Columns per group of partial results. */
export const partColumns = 32

/** A factor of a matmul: a tensor in memory, or rows that are computed while they are loaded. */
export interface MatmulFactor {
  /** A tensor of the kernel, or the output of `prologue`. Its dimensions are some of `batch`, the factor's own axis, and `k`. */
  readonly tensor: string
  /** The row program that computes the factor: every element once per tile that needs it, never stored. */
  readonly prologue?: Kernel | undefined
}

/** A right factor, and the tensor of the epilogue that stands for the matmul with it. */
export interface MatmulProduct {
  readonly b: MatmulFactor
  readonly accumulator: string
}

/**
 * `outputs = epilogue(a x b, a x c, ...)` for each point of `batch`: a has the axes `m` and `k`, the right factors `n` and `k`, in any
 * order. Sums are float32, or int32 where both factors are stored as int8.
 */
export interface MatmulKernel extends Pick<Kernel, 'name' | 'source' | 'dims' | 'types' | 'attrs' | 'tensors' | 'facts'> {
  readonly kind: 'matmul'
  readonly batch: readonly string[]
  readonly m: string
  readonly n: string
  readonly k: string
  readonly a: MatmulFactor
  readonly products: readonly [MatmulProduct, ...MatmulProduct[]]
  /** An elementwise program over rows `batch m` and columns `n`, which reads the sums as its accumulators. */
  readonly epilogue: Kernel
  /**
   * Partial results of each aligned group of `partColumns` columns of a row: reductions of the group, stored contiguously. Columns of a chunk are
   * combined in ascending order, then the chunks of a group as a butterfly, so that the bits do not depend on the number of rows.
   */
  readonly partials?: Kernel | undefined
}

/** The parameter that a factor stands for: a tensor of the kernel, or the output of the prologue. */
export function factorParam({ tensors, name }: Pick<MatmulKernel, 'tensors' | 'name'>, factor: MatmulFactor): TensorParam {
  const found = [...(factor.prologue?.tensors ?? tensors)].find((tensor) => tensor.name === factor.tensor)
  if (found === undefined) throw new Error(`internal: ${name} has no factor ${factor.tensor}`)
  return found
}

/** Factors of a kernel, the left one first. */
export const factorsOf = ({ a, products }: Pick<MatmulKernel, 'a' | 'products'>): readonly MatmulFactor[] => [
  a,
  ...products.map(({ b }) => b),
]

/** True if a kernel accumulates in int32: its factors are stored as int8. */
export const sumsIntegers = (kernel: MatmulKernel): boolean =>
  factorsOf(kernel).every((factor) => factor.prologue === undefined && factorParam(kernel, factor).dtype === 'i8')
