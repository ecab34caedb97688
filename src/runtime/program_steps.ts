/** Lowers one node to steps: ops to kernels with their arguments in the launcher's order, matmuls to strided matmuls. */
import type { KernelEntry, Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { type DType, dtypeInfo, isFloat8 } from '../ir/dtype.js'
import type { Graph, NodeOf, ValueId } from '../ir/graph.js'
import { type Binding, type BoundKernel, valueInfo } from './bind.js'
import { type Layouts, stridesOf } from './layouts.js'
import { lowerMatmul, type Offsets, type StridedMatmul, type StridedOperand } from './matmul.js'
import type { StorageId } from './program_memory.js'

export type FlatStep =
  | {
      readonly kind: 'kernel'
      readonly label: string
      readonly key: string
      readonly buffers: readonly StorageId[]
      readonly dims: readonly number[]
      readonly attrs: readonly number[]
    }
  | {
      readonly kind: 'matmul'
      readonly label: string
      readonly a: StorageId
      readonly b: StorageId
      readonly out: StorageId
      readonly dtypes: readonly [DType, DType, DType]
      readonly matmul: StridedMatmul
      /** First elements of a, b and out, if several matmuls make up one einsum. */
      readonly offsets?: Offsets
      readonly epilogue?: FlatEpilogue
    }
  /** Copies a value to the memory of a state, or preserves it from a step that updates elements in place. */
  | { readonly kind: 'copy'; readonly label: string; readonly from: StorageId; readonly to: StorageId }

/** `MatmulEpilogue` over storages. */
export interface FlatEpilogue {
  readonly bias: StorageId | undefined
  readonly residual: StorageId | undefined
  readonly relu: boolean
}

/** Context of lowering besides the graph. */
export interface StepContext {
  readonly layouts: Layouts
  readonly manifest: Manifest
  /** Architecture of the device, as tuning files name it. */
  readonly architecture: string
}

export function kernelStep(
  label: string,
  { entry, values, dims, attrs }: BoundKernel,
  storageOf: (id: ValueId) => StorageId,
): FlatStep {
  return { kind: 'kernel', label, key: entry.key, buffers: values.map(storageOf), dims, attrs }
}

/**
 * Steps of a matmul: a single one, or one per index along the axes that the strides of a single matmul do not cover.
 * @throws usage `matmul.*` for a matmul that no strides describe, or whose sums may overflow int32
 */
export function matmulSteps(
  label: string,
  graph: Graph,
  node: NodeOf<'matmul'>,
  binding: Binding,
  context: StepContext,
  storageOf: (id: ValueId) => StorageId,
): readonly FlatStep[] {
  const dtype = (id: ValueId): DType => valueInfo(graph, id, binding).dtype
  const operand = (id: ValueId, axes: readonly string[]): StridedOperand => {
    const { shape, layout } = valueInfo(graph, id, binding)
    return { axes, extents: shape, strides: stridesOf(context.layouts, layout, shape) }
  }
  const { a, b, out, subscripts, epilogue } = node
  const dtypes = [dtype(a), dtype(b), dtype(out)] as const
  expectMultiplied(label, dtypes)
  const { matmul, offsets } = lowerMatmul(
    label,
    { a: operand(a, subscripts.a), b: operand(b, subscripts.b), out: operand(out, subscripts.out) },
    epilogue?.bias !== undefined,
  )
  if (dtypes[0] === 'i8') expectSummable(label, matmul.extents[3])
  const faster = offsets.length === 1 ? measuredKernel(node, dtypes, matmul, context) : undefined
  if (faster !== undefined) {
    const [, m, n, k] = matmul.extents
    return [{ kind: 'kernel', label, key: faster.key, buffers: [a, b, out].map(storageOf), dims: [m, n, k], attrs: [] }]
  }
  const plain = { kind: 'matmul', label, a: storageOf(a), b: storageOf(b), out: storageOf(out), dtypes, matmul } as const
  const added = (id: ValueId | undefined) => (id === undefined ? undefined : storageOf(id))
  const step: FlatStep =
    epilogue === undefined
      ? plain
      : { ...plain, epilogue: { bias: added(epilogue.bias), residual: added(epilogue.residual), relu: epilogue.relu } }
  return offsets.length === 1 ? [step] : offsets.map((at): FlatStep => ({ ...step, offsets: at }))
}

/**
 * Generated kernel of a matmul, if it was measured to be faster than the library's at this size. Its arguments are a, b and the result, m, n and k.
 * The CPU device uses it for the sizes of every architecture, so that it checks the kernel that a GPU would run.
 */
function measuredKernel(
  { generated }: NodeOf<'matmul'>,
  dtypes: readonly DType[],
  { extents, strides }: StridedMatmul,
  { manifest, architecture }: StepContext,
): KernelEntry | undefined {
  const [batch, m, n, k] = extents
  const rows = [k, k, n]
  const plain = batch === 1 && strides.every(([, row, column], i) => row === rows[i] && column === 1)
  if (generated === undefined || !plain) return undefined
  return manifest.kernels.find(
    ({ op, buffers, measured = [] }) =>
      op === generated &&
      buffers.every(({ dtype }, i) => dtype === dtypes[i]) &&
      measured.some(
        (size) =>
          (architecture === 'simt' || size.architecture === architecture) &&
          size.length === n &&
          size.depth === k &&
          size.fromRows <= m &&
          m <= (size.toRows ?? m),
      ),
  )
}

/** True if a library multiplies these types: floats of one type, and int8 into int32. */
export function isMultiplied([a, b, out]: readonly [DType, DType, DType]): boolean {
  const isFloat = [a, out].every((dtype) => dtypeInfo[dtype].scalar === 'f32' && dtype !== 'i8' && !isFloat8(dtype))
  return a === b && (a === 'i8' ? out === 'i32' : isFloat)
}

function expectMultiplied(label: string, dtypes: readonly [DType, DType, DType]): void {
  if (isMultiplied(dtypes)) return
  const [a, b, out] = dtypes
  throw usageError('matmul.dtype', `${label}: no library multiplies ${a} and ${b} into ${out}`, {
    hint: 'make the matmul a group of the plan, alone or with the ops around it: a generated kernel multiplies what it reads',
  })
}

/** Maximum number of int8 products whose sum fits int32, for factors within [-127, 127]. */
const maxInt8Terms = Math.floor((2 ** 31 - 1) / 127 ** 2)

function expectSummable(label: string, k: number): void {
  if (k <= maxInt8Terms) return
  throw usageError('matmul.terms', `${label}: sums of ${k} products of int8 may exceed int32`, {
    hint: `at most ${maxInt8Terms} can be added; quantise another operand, or keep this matmul in floats`,
  })
}
