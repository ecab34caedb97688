/**
 * Weights on the host: held in memory, or made piece by piece when they are uploaded, so that a checkpoint larger than the host's memory
 * passes through it without ever being held whole.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'

/** A tensor in host memory, in its storage type; row-major unless a layout is named. */
export interface WeightTensor {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout?: string
  readonly data: Uint8Array
}

/** A tensor in its storage type that is read or computed when it is asked for; row-major unless a layout is named. */
export interface DeferredTensor {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly layout?: string
  /** Of all pieces together. */
  readonly bytes: number
  /**
   * The tensor's bytes in order. A piece is valid until the next one is asked for.
   * @throws what reading throws; the signal's reason when it aborts
   */
  pieces(signal?: AbortSignal): AsyncIterable<Uint8Array>
}

/** A tensor that is in host memory, or comes when it is asked for. */
export type Weight = WeightTensor | DeferredTensor

/** A matrix that is int8 as a model has it: int8 `[rows, columns]`, row-major, and what a step of each row is worth, float32 `[rows]`. */
export interface Int8Tensor {
  readonly values: Weight
  readonly steps: Weight
}

/** Bytes of a dense tensor. */
export const tensorBytes = (dtype: DType, shape: readonly number[]): number =>
  shape.reduce((product, extent) => product * extent, dtypeInfo[dtype].bytes)

/** A row-major tensor whose pieces are made when they are asked for. */
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

/** A weight in host memory. @throws what its pieces throw */
export async function inMemory(weight: Weight, signal?: AbortSignal): Promise<WeightTensor> {
  if ('data' in weight) return weight
  const { bytes: _, pieces: __, ...tensor } = weight
  return { ...tensor, data: await wholeOf(weight, signal) }
}

/** All pieces of a tensor as one. @throws what its pieces throw */
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
export function concatenatedRows(tensor: DeferredTensor, rows: number): DeferredTensor {
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
