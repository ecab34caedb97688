/**
 * Checks of host tensors before an upload. Bodies compute integers in int32, and kernels read elements of u32 and i64 as int32. An element
 * out of range would be misread there, so it is refused here, with its index.
 */

import { type ErrorCode, usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { checkTensor, type Tensor } from './tensor.js'

/**
 * Validates a tensor of a caller whose elements kernels read exactly, and returns it.
 * @param who its role, for messages: `rms_norm: x`
 * @throws usage `<area>.tensor`, `.dtype`, `.shape`, `.data`; `call.value`, `load.value` for an integer out of the range of int32
 */
export function checkGiven(who: string, area: Parameters<typeof checkTensor>[1], given: unknown): Tensor<DType> {
  const tensor = checkTensor(who, area, given)
  const at = wideElement(tensor)
  if (at === undefined) return tensor
  throw usageError(code(area), `${who}: element ${at} is ${tensor.data[at]}, and kernels read ${tensor.dtype} as int32`, {
    hint: 'numbers from -2147483648 to 2147483647 are read exactly: split larger ones into two tensors',
  })
}

/** `call.value`, `load.value`, `run.value` or `tensor.value`. */
const code = (area: Parameters<typeof checkTensor>[1]): ErrorCode => `${area}.value`

/** Index of the first element out of the range of int32. */
function wideElement({ dtype, data }: Tensor<DType>): number | undefined {
  if (dtype !== 'u32' && dtype !== 'i64') return undefined
  // An i64 is in range if its upper half is the sign of its lower one; halves are read many times faster than bigints.
  const words = new Int32Array(data.buffer, data.byteOffset, data.byteLength / 4)
  if (dtype === 'u32') {
    const at = words.findIndex((word) => word < 0)
    return at < 0 ? undefined : at
  }
  for (let i = 0; i < words.length; i += 2) if (words[i + 1] !== (words[i] ?? 0) >> 31) return i / 2
  return undefined
}
