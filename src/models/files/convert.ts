/** Checkpoint tensors into the storage type a model runs in. */
import { usageError } from '../../errors.js'
import { decode, encode } from '../../runtime/buffer.js'
import type { WeightTensor } from '../../runtime/session.js'
import type { ElementType, StoredTensor } from './safetensors.js'

/** Storage types a model can run in. */
export const floatTypes = ['f32', 'f16', 'bf16'] as const

export type FloatType = (typeof floatTypes)[number]

const storedAs: Readonly<Partial<Record<ElementType, FloatType>>> = { F32: 'f32', F16: 'f16', BF16: 'bf16' }

/** Rounds a stored tensor to `dtype`; data that already has it are passed on. @throws usage `weights.dtype` for integers */
export function convertTensor(name: string, tensor: StoredTensor, dtype: FloatType): WeightTensor {
  const stored = storedAs[tensor.dtype]
  if (stored === undefined) {
    throw usageError('weights.dtype', `tensor ${name} is ${tensor.dtype}, expected ${Object.keys(storedAs).join(', ')}`)
  }
  const { shape, data } = tensor
  return { dtype, shape, data: stored === dtype ? data : encode(dtype, decode(stored, data)) }
}
