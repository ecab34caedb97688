/**
 * Storage types of tensors and the scalar types values have while they are computed.
 * A load converts storage to scalar, a store rounds back, so the body of an op never sees a storage type.
 */

export const dtypes = ['f32', 'f16', 'bf16', 'i32', 'i8', 'u8', 'f8e4m3', 'f8e5m2', 'i16', 'u32', 'i64', 'bool'] as const

/** How an element is stored in device memory. The order is that of heddle_dtype (native/include/heddle/abi.h), which has no `bool`. */
export type DType = (typeof dtypes)[number]

/** The type of a value inside a body: floats are always float32, indices and integer tensors int32. */
export type ScalarType = 'f32' | 'i32' | 'bool'

interface DTypeInfo {
  readonly bytes: number
  /** What a load yields and a store takes. */
  readonly scalar: 'f32' | 'i32'
  /** The type's name in CUDA text. */
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
  /** A byte of 0 or 1. Bodies read a condition, which the front end makes of the integer, and store one. */
  bool: { bytes: 1, scalar: 'i32', cuda: 'unsigned char' },
}

/** The number of a type as heddle_dtype has it: to native code a condition is a byte. */
export const abiType = (dtype: DType): number => dtypes.indexOf(dtype === 'bool' ? 'u8' : dtype)

/** The 8-bit floats: every one of their numbers is one of float16 and of bfloat16. */
export const isFloat8 = (dtype: unknown): dtype is 'f8e4m3' | 'f8e5m2' => dtype === 'f8e4m3' || dtype === 'f8e5m2'

export const isDType = (name: string): name is DType => (dtypes as readonly string[]).includes(name)
