/** Converts flattened steps to device steps, and to descriptions for measurements. */
import { abiType, type DType, dtypeInfo } from '../ir/dtype.js'
import type { NativeEpilogue, NativeMatmul, NativeSlice, NativeStep } from './native.js'
import type { StorageId } from './program_memory.js'
import type { FlatEpilogue, FlatStep } from './program_steps.js'
import type { Session } from './session.js'

export interface ProgramStep {
  readonly kind: FlatStep['kind']
  /** `layer0/queryBias` */
  readonly label: string
  /** The instance key of a kernel. */
  readonly kernel: string | undefined
  /** Bytes of all buffers the step reads and writes. A gather reads less of its table than this counts. */
  readonly bytes: number
  /** Multiplications and additions of a matmul; 0 for others. */
  readonly flops: number
}

/** Loads or compiles every kernel that the steps launch. @throws environment `library.kernel`; errors of compiling */
export async function ensureKernels({ library }: Session, steps: readonly FlatStep[]): Promise<void> {
  const labels = new Map(steps.flatMap((step) => (step.kind === 'kernel' ? [[step.key, step.label] as const] : [])).reverse())
  await library.ensure(labels.keys(), { neededBy: (key) => labels.get(key) })
}

/** Device step of a flattened step. */
export function nativeStep(
  session: Session,
  step: FlatStep,
  slice: (id: StorageId) => NativeSlice,
  isChanging: (id: StorageId) => boolean,
): NativeStep {
  if (step.kind === 'kernel') {
    const { kind, label, key, dims, attrs } = step
    const changing = step.buffers.map((id) => (isChanging(id) ? 1 : 0))
    const also = changing.includes(1) ? { changing } : {}
    return { kind, label, library: session.library.of(key), key, buffers: step.buffers.map(slice), dims, attrs, ...also }
  }
  if (step.kind === 'copy') return { kind: 'copy', label: step.label, from: slice(step.from), to: slice(step.to) }
  const [a, b, out] = step.dtypes
  const [fromA, fromB, fromOut] = step.offsets ?? [0, 0, 0]
  const matmul: NativeMatmul = {
    kind: 'matmul',
    label: step.label,
    a: from(slice(step.a), a, fromA),
    b: from(slice(step.b), b, fromB),
    out: from(slice(step.out), out, fromOut),
    dtypes: [abiType(a), abiType(b), abiType(out)],
    allowTf32: session.allowTf32,
    ...step.matmul,
    ...(step.epilogue === undefined ? {} : { epilogue: nativeEpilogue(step.epilogue, slice, out, fromOut) }),
  }
  const algorithm = session.algorithmOf(matmul)
  return algorithm === undefined ? matmul : { ...matmul, algorithm }
}

/** Rest of a slice, starting at an element. */
function from({ buffer, offset, bytes }: NativeSlice, dtype: DType, element: number): NativeSlice {
  const skipped = element * dtypeInfo[dtype].bytes
  return { buffer, offset: offset + skipped, bytes: bytes - skipped }
}

/** A bias spans all of n. A residual has the layout of the result and starts at the same element. */
const nativeEpilogue = (
  { bias, residual, relu }: FlatEpilogue,
  slice: (id: StorageId) => NativeSlice,
  dtype: DType,
  element: number,
): NativeEpilogue => ({
  ...(bias === undefined ? {} : { bias: slice(bias) }),
  ...(residual === undefined ? {} : { residual: from(slice(residual), dtype, element) }),
  relu,
})

function buffersOf(step: FlatStep): readonly StorageId[] {
  if (step.kind === 'kernel') return step.buffers
  if (step.kind === 'copy') return [step.from, step.to]
  return [step.a, step.b, step.out, step.epilogue?.bias, step.epilogue?.residual].flatMap((id) => id ?? [])
}

/** Bytes of one of the matmuls that make up an einsum. */
function partBytes({ dtypes: [a, b, out], matmul: { extents } }: Extract<FlatStep, { kind: 'matmul' }>): number {
  const [batch, m, n, k] = extents
  return batch * (m * k * dtypeInfo[a].bytes + n * k * dtypeInfo[b].bytes + m * n * dtypeInfo[out].bytes)
}

export function describeStep(step: FlatStep, slice: (id: StorageId) => NativeSlice): ProgramStep {
  const isPart = step.kind === 'matmul' && step.offsets !== undefined
  return {
    kind: step.kind,
    label: step.label,
    kernel: step.kind === 'kernel' ? step.key : undefined,
    bytes: isPart ? partBytes(step) : buffersOf(step).reduce((sum, id) => sum + slice(id).bytes, 0),
    flops: step.kind !== 'matmul' ? 0 : 2 * step.matmul.extents.reduce((product, extent) => product * extent, 1),
  }
}
