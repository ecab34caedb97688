/**
 * Weights on the host: in memory, or produced piece by piece during the upload, so that a checkpoint larger than the host's memory is never
 * loaded whole.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'

/** A tensor in host memory, in its storage type; row-major unless a layout is named. */
export interface WeightTensor {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout?: string
  readonly data: Uint8Array
}

/** A tensor in its storage type that is read or computed lazily; row-major unless a layout is named. */
export interface DeferredTensor {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout?: string
  /** Total bytes of all pieces. */
  readonly bytes: number
  /**
   * Yields the tensor's bytes in order. A piece is valid until the next one is requested.
   * @throws errors of reading; the signal's reason when it aborts
   */
  pieces(signal?: AbortSignal): AsyncIterable<Uint8Array>
}

/** A tensor in host memory, or a lazy one. */
export type Weight = WeightTensor | DeferredTensor

/** An int8 matrix of a model: int8 `[rows, columns]`, row-major, and the scale of each row, float32 `[rows]`. */
export interface Int8Tensor {
  readonly values: Weight
  readonly steps: Weight
}

/** Bytes of a dense tensor. */
export const tensorBytes = (dtype: DType, shape: readonly number[]): number =>
  shape.reduce((product, extent) => product * extent, dtypeInfo[dtype].bytes)

/** A row-major tensor whose pieces are computed lazily. */
export const computedTensor = (dtype: DType, shape: readonly number[], pieces: DeferredTensor['pieces']): DeferredTensor => ({
  dtype,
  shape,
  bytes: tensorBytes(dtype, shape),
  pieces,
})

export const weightBytes = (weight: Weight): number => ('data' in weight ? weight.data.byteLength : weight.bytes)

/** The pieces of any weight. */
export async function* piecesOf(weight: Weight, signal?: AbortSignal): AsyncGenerator<Uint8Array, void> {
  if ('data' in weight) yield weight.data
  else yield* weight.pieces(signal)
}

/** Loads a weight into host memory. @throws errors of its pieces */
export async function inMemory(weight: Weight, signal?: AbortSignal): Promise<WeightTensor> {
  if ('data' in weight) return weight
  const { bytes: _, pieces: __, ...tensor } = weight
  return { ...tensor, data: await wholeOf(weight, signal) }
}

/** Concatenates all pieces of a tensor. @throws errors of its pieces */
export async function wholeOf(tensor: Pick<DeferredTensor, 'bytes' | 'pieces'>, signal?: AbortSignal): Promise<Uint8Array> {
  const data = new Uint8Array(tensor.bytes)
  let at = 0
  for await (const piece of tensor.pieces(signal)) {
    data.set(piece, at)
    at += piece.byteLength
  }
  return data
}

/** A row-major tensor without its first `rows` rows. */
export function withoutFirstRows(tensor: DeferredTensor, rows: number): DeferredTensor {
  const [all = 0, ...rest] = tensor.shape
  if (rows === 0 || all === 0) return tensor
  const skipped = (tensor.bytes / all) * rows
  return {
    ...tensor,
    shape: [all - rows, ...rest],
    bytes: tensor.bytes - skipped,
    async *pieces(signal) {
      let left = skipped
      for await (const piece of tensor.pieces(signal)) {
        const cut = Math.min(left, piece.byteLength)
        left -= cut
        if (cut < piece.byteLength) yield piece.subarray(cut)
      }
    },
  }
}
