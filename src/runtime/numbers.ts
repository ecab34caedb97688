/** Plain numbers to and from storage bytes, regardless of the host array of a storage type. */
import type { DType } from '../ir/dtype.js'
import { decode, encode } from './buffer.js'

/** The bytes that store `values`, rounded to nearest even; 8-bit floats saturate. Integers must be in range. */
export function encodeNumbers(dtype: DType, values: ArrayLike<number>): Uint8Array {
  switch (dtype) {
    case 'f32':
    case 'f16':
    case 'bf16':
    case 'f8e4m3':
    case 'f8e5m2':
      return encode(dtype, new Float32Array(values))
    case 'i32':
      return encode(dtype, new Int32Array(values))
    case 'i8':
      return encode(dtype, new Int8Array(values))
    case 'u8':
    case 'bool':
      return encode(dtype, new Uint8Array(values))
    case 'i16':
      return encode(dtype, new Int16Array(values))
    case 'u32':
      return encode(dtype, new Uint32Array(values))
    case 'i64':
      return encode(dtype, new Float64Array(values))
  }
}

/** Rounds `values` to their storage type by storing and loading them. */
export const roundTo = (dtype: DType, values: ArrayLike<number>): ArrayLike<number> => decode(dtype, encodeNumbers(dtype, values))
