/**
 * Converts checkpoint tensors to the storage type that a model runs in, in chunks. A tensor that has this type already is passed through unchanged. A
 * value that is not finite is reported here, with its tensor and position: on the device it would yield results that look plausible.
 */
import { findingError, usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { decode, encode } from '../runtime/buffer.js'
import type { DeferredTensor } from '../runtime/weight.js'
import { tensorBytes } from '../runtime/weight.js'
import { holdsNonFinite } from './finite.js'
import { type FloatType, floatTypes } from './float_types.js'
import type { FileTensor, StoredTensor } from './safetensors.js'
import { type ElementType, shown } from './safetensors_header.js'

export { type FloatType, floatTypes }

/** @throws usage `run.dtype` for a type that no model runs in, which untyped callers may pass */
export function expectFloatType(dtype: FloatType): void {
  if (floatTypes.includes(dtype)) return
  throw usageError('run.dtype', `unknown dtype ${JSON.stringify(dtype)}`, { hint: `known: ${floatTypes.join(', ')}` })
}

/** A tensor of a checkpoint, in its file or in memory. */
export type CheckpointTensor = FileTensor | StoredTensor

const storedAs: Readonly<Partial<Record<ElementType, FloatType>>> = { F32: 'f32', F16: 'f16', BF16: 'bf16' }

/** Non-finite values that a tensor may have: a bias of logits may exclude tokens by -Infinity. */
export type Allowed = 'finite' | 'finite or -Infinity'

/**
 * A tensor rounded to `dtype` when it is read. Reading throws finding `weights.value` for a value that is not finite, or too large for `dtype`.
 * @throws usage `weights.dtype` for integers
 */
export function convertTensor(
  name: string,
  tensor: CheckpointTensor,
  dtype: FloatType,
  allowed: Allowed = 'finite',
): DeferredTensor {
  const stored = storedAs[tensor.dtype]
  if (stored === undefined) {
    throw usageError('weights.dtype', `tensor ${shown(name)} is ${tensor.dtype}, expected ${Object.keys(storedAs).join(', ')}`, {
      ...(tensor.dtype.startsWith('F8')
        ? { hint: 'models do not read the scales of 8-bit floats: save the checkpoint in bf16' }
        : {}),
    })
  }
  const { shape } = tensor
  return {
    dtype,
    shape,
    bytes: tensorBytes(dtype, shape),
    async *pieces(signal) {
      let first = 0
      const convert = converter(stored, dtype)
      for await (const piece of 'data' in tensor ? [tensor.data] : tensor.pieces(signal)) {
        const values = aligned(piece)
        const converted = convert(values)
        // Widening preserves finiteness, and the narrower values are scanned faster.
        const seen = dtype === 'f32' ? stored : dtype
        if (holdsNonFinite(seen, seen === dtype ? converted : values)) {
          expectNumbers({ name, shape, first, stored, dtype, allowed }, values, converted)
        }
        yield converted
        first += piece.byteLength / dtypeInfo[stored].bytes
      }
    },
  }
}

/** Rounds chunks of a tensor. Each result reuses the memory of the previous one. */
function converter(stored: FloatType, dtype: FloatType): (piece: Uint8Array) => Uint8Array {
  if (stored === dtype) return (piece) => piece
  let [wide, narrow] = [new ArrayBuffer(0), new ArrayBuffer(0)]
  return (piece) => {
    const bytes = (piece.byteLength / dtypeInfo[stored].bytes) * Float32Array.BYTES_PER_ELEMENT
    if (stored !== 'f32' && wide.byteLength < bytes) wide = new ArrayBuffer(bytes)
    if (dtype !== 'f32' && narrow.byteLength < bytes / 2) narrow = new ArrayBuffer(bytes / 2)
    return encode(dtype, decode(stored, piece, wide), narrow)
  }
}

/** Bytes at an offset that is aligned for typed arrays. */
const aligned = (bytes: Uint8Array): Uint8Array => (bytes.byteOffset % 4 === 0 ? bytes : bytes.slice())

interface Place {
  readonly name: string
  readonly shape: readonly number[]
  /** Index of the chunk's first value in its tensor. */
  readonly first: number
  readonly stored: FloatType
  readonly dtype: FloatType
  readonly allowed: Allowed
}

/** @throws finding `weights.value` for the first value that is not finite, with its position in the tensor */
function expectNumbers({ name, shape, first, stored, dtype, allowed }: Place, piece: Uint8Array, converted: Uint8Array): void {
  const before = decode(stored, piece)
  const at = decode(dtype, converted).findIndex(
    (value, i) => !Number.isFinite(value) && !(allowed !== 'finite' && before[i] === Number.NEGATIVE_INFINITY),
  )
  if (at < 0) return
  const value = before[at] ?? Number.NaN
  const what = Number.isFinite(value) ? `${value}, too large for ${dtype}` : `${value}`
  throw findingError('weights.value', `tensor ${shown(name)} is ${what} at [${indexOf(first + at, shape).join(', ')}]`, {
    hint: Number.isFinite(value) ? 'run the model in f32 or bf16' : `weights must be ${allowed}: the file may be damaged`,
  })
}

/** Indices of a value from its row-major position. */
function indexOf(number: number, shape: readonly number[]): number[] {
  let rest = number
  return shape
    .toReversed()
    .map((extent) => {
      const index = rest % extent
      rest = Math.floor(rest / extent)
      return index
    })
    .toReversed()
}
