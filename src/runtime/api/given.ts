/**
 * Host tensors on their way to a device. Bodies compute integers in int32, and kernels read elements of u32 and i64 as such; one that int32
 * does not hold would be read as another number there, so it is refused here, by its place.
 */

import { type ErrorCode, usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { checkTensor, type Tensor } from './tensor.js'

/**
 * What was given as a tensor, if it is one that kernels read as it is.
 * @param who what it was given as: `rms_norm: x`
 * @throws usage `<area>.tensor`, `.dtype`, `.shape`, `.data`; `call.value`, `load.value` for an integer that is no int32
 */
export function checkGiven(who: string, area: Parameters<typeof checkTensor>[1], given: unknown): Tensor<DType> {
  const tensor = checkTensor(who, area, given)
  const at = wideElement(tensor)
  if (at === undefined) return tensor
  throw usageError(code(area), `${who}: element ${at} is ${tensor.data[at]}, and kernels read ${tensor.dtype} as int32`, {
    hint: 'numbers from -2147483648 to 2147483647 are read as they are: split larger ones into two tensors',
  })
}

/** What `call.value`, `load.value`, `run.value` and `tensor.value` say. */
const code = (area: Parameters<typeof checkTensor>[1]): ErrorCode => `${area}.value`

/** The first element that int32 does not hold. */
function wideElement({ dtype, data }: Tensor<DType>): number | undefined {
  if (dtype !== 'u32' && dtype !== 'i64') return undefined
  // The halves of an i64 tell, and are read many times as fast as it.
  const words = new Int32Array(data.buffer, data.byteOffset, data.byteLength / 4)
  if (dtype === 'u32') {
    const at = words.findIndex((word) => word < 0)
    return at < 0 ? undefined : at
  }
  for (let i = 0; i < words.length; i += 2) if (words[i + 1] !== (words[i] ?? 0) >> 31) return i / 2
  return undefined
}
