/**
 * Storage types of tensors, and the scalar types of values during computation.
 * A load converts storage to scalar and a store rounds back, so that the body of an op never sees a storage type.
 */

export const dtypes = ['f32', 'f16', 'bf16', 'i32', 'i8', 'u8', 'f8e4m3', 'f8e5m2', 'i16', 'u32', 'i64', 'bool'] as const

/** Storage type of an element in device memory. The order is that of heddle_dtype (native/include/heddle/abi.h), which has no `bool`. */
export type DType = (typeof dtypes)[number]

/** Type of a value inside a body: floats are always float32, indices and integer tensors int32. */
export type ScalarType = 'f32' | 'i32' | 'bool'

interface DTypeInfo {
  readonly bytes: number
  /** Type of a loaded value, and of a value to store. */
  readonly scalar: 'f32' | 'i32'
  /** Name of the type in CUDA source. */
  readonly cuda: string
}

export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  f32: { bytes: 4, scalar: 'f32', cuda: 'float' },
  f16: { bytes: 2, scalar: 'f32', cuda: '__half' },
  bf16: { bytes: 2, scalar: 'f32', cuda: '__nv_bfloat16' },
  i32: { bytes: 4, scalar: 'i32', cuda: 'int' },
  i8: { bytes: 1, scalar: 'f32', cuda: 'signed char' },
  u8: { bytes: 1, scalar: 'i32', cuda: 'unsigned char' },
  f8e4m3: { bytes: 1, scalar: 'f32', cuda: 'heddle::F8E4M3' },
  f8e5m2: { bytes: 1, scalar: 'f32', cuda: 'heddle::F8E5M2' },
  i16: { bytes: 2, scalar: 'i32', cuda: 'short' },
  u32: { bytes: 4, scalar: 'i32', cuda: 'unsigned int' },
  i64: { bytes: 8, scalar: 'i32', cuda: 'int64_t' },
  /** A byte of 0 or 1. Bodies read and store conditions; the front end converts from the integer. */
  bool: { bytes: 1, scalar: 'i32', cuda: 'unsigned char' },
}

/** Value of heddle_dtype for a type: to native code a condition is a byte. */
export const abiType = (dtype: DType): number => dtypes.indexOf(dtype === 'bool' ? 'u8' : dtype)

/** True for the 8-bit floats, whose values are all exact in float16 and in bfloat16. */
export const isFloat8 = (dtype: unknown): dtype is 'f8e4m3' | 'f8e5m2' => dtype === 'f8e4m3' || dtype === 'f8e5m2'

export const isDType = (name: string): name is DType => (dtypes as readonly string[]).includes(name)
