/**
 * Matmul kernels: one or several matmuls with a common left factor, and their epilogue. src/fuse/product derives them from the
 * bodies of a group. Their meaning is the composition of row programs with a sum over `k` between them.
 */
import { call, dim, i32 } from './build.js'
import type { Expr } from './expr.js'
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

/** Rows of a matmul up to which a group of reduced rows is one chunk: main loops for few rows hold no more columns of a row together. */
const [fewRows, chunkColumns] = [8, 8]

/**
 * Two programs for the reductions of whole rows of a matmul that is never stored. `partials` runs over the rows and over `groups` of `width`
 * columns, and reduces each group; `rest` runs over the rows, and combines the results of their groups. Tensors between them are `shared`.
 */
export interface ReducedRows {
  /** Dimensions that are no arguments of the kernel: columns per group, and groups per row. `rest` computes them. */
  readonly width: string
  readonly groups: string
  readonly partials: Kernel
  readonly rest: Kernel
  readonly shared: readonly TensorParam[]
}

/** Extents of the dimensions of groups: `partColumns` columns each, or of few rows those of a chunk. */
export function groupExtents(
  rows: readonly string[],
  columns: string,
  { width, groups }: Pick<ReducedRows, 'width' | 'groups'>,
): Record<string, Expr> {
  const all = rows.map(dim).reduce((product, extent) => call('mul', product, extent))
  const wide = call('select', call('le', all, i32(fewRows)), i32(chunkColumns), i32(partColumns))
  return { [width]: wide, [groups]: call('idiv', call('add', dim(columns), call('sub', wide, i32(1))), wide) }
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
export interface MatmulKernel
  extends Pick<Kernel, 'name' | 'source' | 'dims' | 'computed' | 'types' | 'attrs' | 'tensors' | 'facts'> {
  readonly kind: 'matmul'
  readonly batch: readonly string[]
  readonly m: string
  readonly n: string
  readonly k: string
  readonly a: MatmulFactor
  readonly products: readonly [MatmulProduct, ...MatmulProduct[]]
  /**
   * An elementwise program over rows `batch m` and columns `n`, which reads the sums as its accumulators. With `reduced` it is a program over the
   * rows that only reduces their columns.
   */
  readonly epilogue: Kernel
  /** Two launches that compute a program which reduces rows. */
  readonly reduced?: ReducedRows | undefined
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
