/**
 * Tensors on the host: a storage type, a shape, and the stored elements in row-major order. Tensors from callers are validated here before
 * use; for typed code, TypeScript checks the same at compile time.
 */
import { type ErrorCode, usageError } from '../../errors.js'
import { type DType, dtypeInfo, dtypes, isDType, isFloat8 } from '../../ir/dtype.js'
import { decode, type HostArrays } from '../buffer.js'
import { bf16, f8e4m3, f8e5m2, f16 } from './half.js'

/** Array type of each storage type. Node 20 has none for 16-bit and 8-bit floats, so these hold bits: `f16.from`, `f8e4m3.from`. */
export interface TensorArrays {
  readonly f32: Float32Array
  readonly f16: Uint16Array
  readonly bf16: Uint16Array
  readonly i32: Int32Array
  readonly i8: Int8Array
  readonly u8: Uint8Array
  readonly f8e4m3: Uint8Array
  readonly f8e5m2: Uint8Array
  readonly i16: Int16Array
  readonly u32: Uint32Array
  readonly i64: BigInt64Array
  /** Bytes of 0 and 1. */
  readonly bool: Uint8Array
}

/**
 * A tensor in host memory, row-major. A shape without extents is a scalar, with one element. The default type parameter covers the storage
 * types with number elements; the bigint elements of i64 need `Tensor<'i64'>`.
 */
export type Tensor<D extends DType = Exclude<DType, 'i64'>> = {
  readonly [K in D]: { readonly dtype: K; readonly shape: readonly number[]; readonly data: TensorArrays[K] }
}[D]

const arrays: { readonly [D in DType]: new (length: number) => TensorArrays[D] } = {
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  i8: Int8Array,
  u8: Uint8Array,
  f8e4m3: Uint8Array,
  f8e5m2: Uint8Array,
  i16: Int16Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  bool: Uint8Array,
}

/** Smallest and largest integer of each integer type; for i64, the safe integers of a number. */
const ranges: { readonly [D in DType]?: readonly [number, number] } = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  i8: [-128, 127],
  u8: [0, 255],
  bool: [0, 1],
  i16: [-32_768, 32_767],
  u32: [0, 2 ** 32 - 1],
  i64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
}

/**
 * Creates a tensor of the given values in row-major order: `tensor('f16', [2, 3], [1, 2, 3, 4, 5, 6])`. An array of the type's own array type
 * is used without a copy: for f16 and bf16 a Uint16Array of bits, for f8e4m3 and f8e5m2 a Uint8Array of codes, for i64 a BigInt64Array. Other
 * numbers are converted, floats rounded to nearest; values of bool may be booleans. 8-bit floats saturate to their largest number.
 * @throws usage `tensor.dtype`, `tensor.shape`, `tensor.data` if the number of elements differs from the shape's, `tensor.value` for a value
 * that an integer type cannot represent
 */
export function tensor<const D extends DType>(
  dtype: D,
  shape: readonly number[],
  data: TensorArrays[D] | ArrayLike<number> | (D extends 'bool' ? ArrayLike<boolean> : never),
): Tensor<D> {
  const count = elementsOf('a tensor', 'tensor', dtype, shape)
  if (typeof data !== 'object' || data === null || !Number.isInteger(data.length)) {
    throw usageError('tensor.data', `values of a tensor: expected an array of numbers, got ${typeName(data)}`)
  }
  expectCount('a tensor', 'tensor', dtype, shape, data.length, count)
  if (data instanceof arrays[dtype]) return tensorFrom(dtype, shape, data)
  // Bigint elements are accepted only in the type's own array.
  if (data instanceof BigInt64Array) throw usageError('tensor.data', `${dtype} cannot be converted from a BigInt64Array`)
  return tensorFrom(dtype, shape, converted(dtype, data as ArrayLike<number | boolean>))
}

/** Creates a tensor of zeros. @throws usage `tensor.dtype`, `tensor.shape` */
export const zeros = <const D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> =>
  tensorFrom(dtype, shape, new arrays[dtype](elementsOf('a tensor', 'tensor', dtype, shape)))

/**
 * Returns the numbers of a tensor: f16, bf16 and 8-bit floats as float32, i64 as a Float64Array, other types as the tensor's own array,
 * without a copy.
 * @throws usage `tensor.*` for an invalid tensor; `tensor.value` for an i64 beyond 2^53, which a number cannot represent
 */
export function toNumbers<D extends DType>(of: Tensor<D>): HostArrays[D] {
  const { dtype, data } = checkTensor('toNumbers', 'tensor', of)
  if (data instanceof BigInt64Array) {
    const at = data.findIndex((value) => !Number.isSafeInteger(Number(value)))
    if (at >= 0)
      throw usageError('tensor.value', `element ${at} is ${data[at]}: numbers are exact up to 2^53`, { hint: 'read its data' })
  }
  return decode(dtype, bytesOf(data)) as HostArrays[D]
}

// The array has the type's array type, which TypeScript cannot infer from a table of arrays by type.
const tensorFrom = <D extends DType>(dtype: D, shape: readonly number[], data: unknown): Tensor<D> =>
  ({ dtype, shape: [...shape], data }) as unknown as Tensor<D>

function converted(dtype: DType, given: ArrayLike<number | boolean>): TensorArrays[DType] {
  const values = (dtype === 'bool' ? Array.from(given, Number) : given) as ArrayLike<number>
  if (dtype === 'f16' || dtype === 'bf16') return (dtype === 'f16' ? f16 : bf16).from(values)
  if (isFloat8(dtype)) return (dtype === 'f8e4m3' ? f8e4m3 : f8e5m2).from(values)
  if (dtype === 'f32') return Float32Array.from(values)
  if (dtype === 'i64') return BigInt64Array.from(integers(dtype, values), BigInt)
  const result = new arrays[dtype](values.length)
  result.set(integers(dtype, values))
  return result
}

/** Checks that an integer type can represent the numbers. @throws usage `tensor.value` for the first that it cannot */
function integers(dtype: DType, values: ArrayLike<number>): number[] {
  const [low, high] = ranges[dtype] ?? [0, 0]
  return Array.from(values, (value, i) => {
    if (!(Number.isInteger(value) && value >= low && value <= high)) {
      throw usageError('tensor.value', `element ${i}: expected an integer in [${low}, ${high}] for ${dtype}, got ${value}`, {
        hint: 'round and clamp the values first, or use a float type',
      })
    }
    return value
  })
}

/** Bytes of a tensor's elements, without a copy. */
export const bytesOf = (data: ArrayBufferView): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)

/** Tensor over bytes returned by a device. */
export function tensorOf<D extends DType>(dtype: D, shape: readonly number[], bytes: Uint8Array): Tensor<D> {
  const size = dtypeInfo[dtype].bytes
  const { buffer, byteOffset } = bytes.byteOffset % size === 0 ? bytes : bytes.slice()
  const array: new (memory: ArrayBufferLike, offset: number, length: number) => unknown = arrays[dtype] as never
  return tensorFrom(dtype, shape, new array(buffer, byteOffset, bytes.byteLength / size))
}

/** Type of a value, for messages: `a Float32Array`, `a string`, `undefined`. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`
}

type Area = 'tensor' | 'call' | 'load' | 'run'
const code = (area: Area, what: 'tensor' | 'dtype' | 'shape' | 'data'): ErrorCode => `${area}.${what}`

/**
 * Validates a tensor of a caller and returns it.
 * @param who its role, for messages: `rms_norm: x`
 * @throws usage `<area>.tensor`, `.dtype`, `.shape`, `.data`
 */
export function checkTensor(who: string, area: Area, given: unknown): Tensor<DType> {
  if (typeof given !== 'object' || given === null || !('dtype' in given && 'shape' in given && 'data' in given)) {
    throw usageError(code(area, 'tensor'), `${who}: expected a tensor, got ${typeName(given)}`, {
      hint: "write tensor('f32', [2, 3], values), or { dtype, shape, data }",
    })
  }
  const { dtype, shape, data } = given
  const count = elementsOf(who, area, dtype, shape)
  const type = dtype as DType
  if (!(data instanceof arrays[type])) {
    throw usageError(
      code(area, 'data'),
      `${who}: expected a ${arrays[type].name} as the data of ${type}, got ${typeName(data)}`,
      {
        hint: `tensor('${type}', shape, values) converts numbers`,
      },
    )
  }
  expectCount(who, area, type, shape as readonly number[], data.length, count)
  return given as Tensor<DType>
}

/** Number of elements of a shape. */
function elementsOf(who: string, area: Area, dtype: unknown, shape: unknown): number {
  if (typeof dtype !== 'string' || !isDType(dtype)) {
    throw usageError(code(area, 'dtype'), `${who}: expected a storage type, got ${JSON.stringify(dtype) ?? typeName(dtype)}`, {
      hint: `storage types are ${dtypes.join(', ')}`,
    })
  }
  if (!Array.isArray(shape)) {
    throw usageError(code(area, 'shape'), `${who}: expected a list of extents as the shape, got ${typeName(shape)}`)
  }
  const wrong = shape.find((extent: unknown) => !Number.isSafeInteger(extent) || (extent as number) < 0)
  const count = shape.reduce<number>((product, extent) => product * Number(extent), 1)
  if (wrong !== undefined || shape.includes(undefined) || !Number.isSafeInteger(count)) {
    throw usageError(code(area, 'shape'), `${who}: [${shape.join(', ')}] is not a shape`, {
      hint: 'extents are integers >= 0',
    })
  }
  return count
}

function expectCount(who: string, area: Area, dtype: DType, shape: readonly number[], found: number, count: number): void {
  if (found === count) return
  throw usageError(code(area, 'data'), `${who}: ${dtype} [${shape.join(', ')}]: expected ${count} elements, got ${found}`)
}
