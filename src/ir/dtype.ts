/**
 * Storage types of tensors and the scalar types values have while they are computed.
 * A load converts storage to scalar, a store rounds back, so the body of an op never sees a storage type.
 */

export const dtypes = ['f32', 'f16', 'bf16', 'i32', 'i8', 'u8'] as const

/** How an element is stored in device memory. */
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
}

export const isDType = (name: string): name is DType => (dtypes as readonly string[]).includes(name)
