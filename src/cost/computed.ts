/**
 * Arithmetic and memory that a matmul spends on factors that it computes, such as a norm before it, or copies, for the cost model. The main loops of
 * native/device/matmul_products.cuh decide. Few rows are computed again by each tile of columns, while the weights are read anyway. For more rows
 * a kernel of its own stores the factor first, and nothing is saved. Factors in memory whose rows are not aligned are copied by one launch.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import { slowIntrinsics } from '../ir/intrinsics.js'
import type { Kernel } from '../ir/kernel.js'
import { factorParam, factorsOf, type MatmulFactor, type MatmulKernel, sumsIntegers } from '../ir/product.js'
import { stmtExprs, visit } from '../ir/walk.js'
import type { Sizes } from './sizes.js'

/** Maximum number of rows that a main loop computes for each tile of columns: `few::most_rows` of the device headers. */
export const fewRows = 8
/** Columns of a block for few rows and of one for many, and rows of the latter. */
const fewColumns = 16
const tileColumns = 128
const tileRows = 128
/** Types that tensor cores multiply as they are stored. */
const tensorTypes: readonly DType[] = ['f16', 'bf16', 'i8']
/** Bytes that asynchronous copies move at a time. */
const wordBytes = 16

/** Cost of a slow function, in additions. */
const slowOperations = 10

/** Work that computed factors add to a matmul. */
export interface ComputedWork {
  /** Operations in float32, counted as often as they are done. */
  readonly operations: number
  /** Elements of factors that are converted and stored first, and read again, each by a launch of its own. */
  readonly stored: readonly number[]
  /** Row programs of factors that are stored first. */
  readonly launched: readonly Kernel[]
}

/** Extents of a kernel's axes, with the axes of a batch multiplied. */
interface Extents {
  readonly matrices: number
  readonly m: number
  readonly n: number
  readonly k: number
}

/**
 * @param sizes extents of the kernel's dimensions
 * @param dtype storage type of its floats
 */
export function computedWork(kernel: MatmulKernel, { dims }: Sizes, dtype: DType): ComputedWork {
  const of = (dim: string): number => dims[dim] ?? 0
  const matrices = kernel.batch.reduce((product, dim) => product * of(dim), 1)
  const extents: Extents = { matrices, m: of(kernel.m), n: of(kernel.n), k: of(kernel.k) }
  const parts = factorsOf(kernel).map((factor, at) => workOf(kernel, factor, at === 0 ? 'left' : 'right', extents))
  return {
    operations: parts.reduce((sum, { operations }) => sum + operations, 0),
    stored: [...parts.flatMap(({ stored }) => stored), ...copiedElements(kernel, extents, dtype)],
    launched: parts.flatMap(({ launched }) => launched),
  }
}

/** Longest row that the simple loop multiplies as it is: `Matmul::copies()` of the device headers. */
const shortRow = 64

/** Elements of factors that one launch copies, so that rows begin at multiples of 16 bytes. */
function copiedElements(kernel: MatmulKernel, { m, n, k }: Extents, dtype: DType): readonly number[] {
  const factors = factorsOf(kernel)
  const refs = factors.map((factor) => factorParam(kernel, factor).dtype)
  const [type = dtype, ...others] = new Set(refs.map((ref) => (typeof ref === 'string' ? ref : dtype)))
  const inMemory = kernel.batch.length === 0 && others.length === 0 && factors.every(({ prologue }) => prologue === undefined)
  const isAligned = (k * dtypeInfo[type].bytes) % wordBytes === 0
  return !inMemory || isAligned || !tensorTypes.includes(type) || k <= shortRow ? [] : [(m + n * kernel.products.length) * k]
}

const nothing: ComputedWork = { operations: 0, stored: [], launched: [] }

function workOf(
  kernel: MatmulKernel,
  factor: MatmulFactor,
  side: 'left' | 'right',
  { matrices, m, n, k }: Extents,
): ComputedWork {
  const { prologue } = factor
  // Integers of a byte, such as int8 weights, that are multiplied as floats.
  const read = prologue === undefined ? [factorParam(kernel, factor)] : prologue.tensors.filter(({ access }) => access === 'in')
  const isConverted = side === 'right' && !sumsIntegers(kernel) && read.some(({ dtype }) => dtype === 'i8')
  if (prologue === undefined && !isConverted) return nothing
  const isFew = m <= fewRows
  const elements = matrices * k * (side === 'left' ? m : n)
  const once = elements * (prologue === undefined ? 1 : operationsOf(prologue))
  const isStored = !isFew && matrices === 1 && (side === 'left' || isConverted)
  if (isStored && prologue !== undefined) return { ...nothing, launched: [prologue] }
  if (isStored) return { ...nothing, operations: once, stored: [elements] }
  const columns = isFew ? fewColumns : tileColumns / kernel.products.length
  const times = side === 'left' ? Math.ceil(n / columns) : Math.ceil(m / tileRows)
  return { ...nothing, operations: once * times }
}

/** Operations per element of a row program: one per function, including those of reductions. */
function operationsOf(prologue: Kernel): number {
  const operations = prologue.body.flatMap(stmtExprs).reduce((sum, expr) => sum + operationsIn(expr), 0)
  return operations + prologue.body.filter(({ kind }) => kind === 'reduce').length
}

/** Operations of an expression in float32. */
export function operationsIn(expr: Expr): number {
  let operations = 0
  visit(expr, (node) => {
    if (node.kind === 'call') operations += node.type !== 'f32' ? 0 : slowIntrinsics.has(node.fn) ? slowOperations : 1
  })
  return operations
}
