/**
 * Tensors on the host: a storage type, a shape, and the elements in row-major order as they are stored. What comes from a user is checked
 * here before anything is made of it; TypeScript has checked the same where it was written.
 */
import { type ErrorCode, usageError } from '../../errors.js'
import { type DType, dtypeInfo, dtypes, isDType, isFloat8 } from '../../ir/dtype.js'
import { decode, type HostArrays } from '../buffer.js'
import { bf16, f8e4m3, f8e5m2, f16 } from './half.js'

/** The array that holds each storage type. Node 20 has none of 16-bit and 8-bit floats, so those are their bits: `f16.from`, `f8e4m3.from`. */
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
 * A tensor in host memory, row-major. A shape without extents is a scalar, of one element. Where no type is named, elements are numbers: those of
 * an i64, which are bigints, are so typed where i64 is declared.
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

/** Smallest and largest integer of each integer type; of i64, those that a number can say. */
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
 * A tensor of the given values in row-major order: `tensor('f16', [2, 3], [1, 2, 3, 4, 5, 6])`. An array of the type's own kind is used as it is,
 * without a copy (for f16 and bf16 a Uint16Array of bits, for f8e4m3 and f8e5m2 a Uint8Array of codes, for i64 a BigInt64Array); any other
 * numbers are converted, floats rounded to nearest; those of bool may be booleans. 8-bit floats saturate: what is too large becomes their largest number.
 * @throws usage `tensor.dtype`, `tensor.shape`, `tensor.data` for a number of elements that is not the shape's, `tensor.value` for what an
 * integer type does not hold
 */
export function tensor<const D extends DType>(
  dtype: D,
  shape: readonly number[],
  data: TensorArrays[D] | ArrayLike<number> | (D extends 'bool' ? ArrayLike<boolean> : never),
): Tensor<D> {
  const count = elementsOf('a tensor', 'tensor', dtype, shape)
  if (typeof data !== 'object' || data === null || !Number.isInteger(data.length)) {
    throw usageError('tensor.data', `the values of a tensor must be an array of numbers, got ${typeName(data)}`)
  }
  expectCount('a tensor', 'tensor', dtype, shape, data.length, count)
  if (data instanceof arrays[dtype]) return made(dtype, shape, data)
  // Of no other array than the type's own are the elements bigints.
  if (data instanceof BigInt64Array) throw usageError('tensor.data', `${dtype} cannot be made of a BigInt64Array`)
  return made(dtype, shape, converted(dtype, data as ArrayLike<number | boolean>))
}

/** A tensor of zeros. @throws usage `tensor.dtype`, `tensor.shape` */
export const zeros = <const D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> =>
  made(dtype, shape, new arrays[dtype](elementsOf('a tensor', 'tensor', dtype, shape)))

/**
 * The numbers of a tensor: those of f16, bf16 and 8-bit floats as float32, those of i64 as a Float64Array, the others in the tensor's own
 * array, which is not copied.
 * @throws usage `tensor.*` for what is no tensor; `tensor.value` for an i64 beyond 2^53, which no number is equal to
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

// The array is that of the type: no table of arrays by type tells TypeScript so.
const made = <D extends DType>(dtype: D, shape: readonly number[], data: unknown): Tensor<D> =>
  ({ dtype, shape: [...shape], data }) as unknown as Tensor<D>

function converted(dtype: DType, given: ArrayLike<number | boolean>): TensorArrays[DType] {
  const values = (dtype === 'bool' ? Array.from(given, Number) : given) as ArrayLike<number>
  if (dtype === 'f16' || dtype === 'bf16') return (dtype === 'f16' ? f16 : bf16).from(values)
  if (isFloat8(dtype)) return (dtype === 'f8e4m3' ? f8e4m3 : f8e5m2).from(values)
  if (dtype === 'f32') return Float32Array.from(values)
  if (dtype === 'i64') return BigInt64Array.from(whole(dtype, values), BigInt)
  const result = new arrays[dtype](values.length)
  result.set(whole(dtype, values))
  return result
}

/** Numbers that an integer type holds. @throws usage `tensor.value` for the first that it does not */
function whole(dtype: DType, values: ArrayLike<number>): number[] {
  const [low, high] = ranges[dtype] ?? [0, 0]
  return Array.from(values, (value, i) => {
    if (!(Number.isInteger(value) && value >= low && value <= high)) {
      throw usageError('tensor.value', `element ${i} is ${value}: ${dtype} holds whole numbers from ${low} to ${high}`, {
        hint: 'round and clamp the values first, or use a float type',
      })
    }
    return value
  })
}

/** The bytes of a tensor's elements, without a copy. */
export const bytesOf = (data: ArrayBufferView): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)

/** A tensor of bytes as a device returned them. */
export function tensorOf<D extends DType>(dtype: D, shape: readonly number[], bytes: Uint8Array): Tensor<D> {
  const size = dtypeInfo[dtype].bytes
  const { buffer, byteOffset } = bytes.byteOffset % size === 0 ? bytes : bytes.slice()
  const array: new (memory: ArrayBufferLike, offset: number, length: number) => unknown = arrays[dtype] as never
  return made(dtype, shape, new array(buffer, byteOffset, bytes.byteLength / size))
}

/** `a Float32Array`, `a string`, `undefined`: what a value is, for messages. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`
}

type Area = 'tensor' | 'call' | 'load' | 'run'
const code = (area: Area, what: 'tensor' | 'dtype' | 'shape' | 'data'): ErrorCode => `${area}.${what}`

/**
 * What was given as a tensor, if it is one.
 * @param who what it was given as: `rms_norm: x`
 * @throws usage `<area>.tensor`, `.dtype`, `.shape`, `.data`
 */
export function checkTensor(who: string, area: Area, given: unknown): Tensor<DType> {
  if (typeof given !== 'object' || given === null || !('dtype' in given && 'shape' in given && 'data' in given)) {
    throw usageError(code(area, 'tensor'), `${who} must be a tensor, got ${typeName(given)}`, {
      hint: "write tensor('f32', [2, 3], values), or { dtype, shape, data }",
    })
  }
  const { dtype, shape, data } = given
  const count = elementsOf(who, area, dtype, shape)
  const type = dtype as DType
  if (!(data instanceof arrays[type])) {
    throw usageError(code(area, 'data'), `${who}: data of type ${type} is a ${arrays[type].name}, got ${typeName(data)}`, {
      hint: `tensor('${type}', shape, values) converts numbers`,
    })
  }
  expectCount(who, area, type, shape as readonly number[], data.length, count)
  return given as Tensor<DType>
}

/** The number of elements of a shape. */
function elementsOf(who: string, area: Area, dtype: unknown, shape: unknown): number {
  if (typeof dtype !== 'string' || !isDType(dtype)) {
    throw usageError(code(area, 'dtype'), `${who}: ${JSON.stringify(dtype) ?? typeName(dtype)} is no storage type`, {
      hint: `storage types are ${dtypes.join(', ')}`,
    })
  }
  if (!Array.isArray(shape)) {
    throw usageError(code(area, 'shape'), `${who}: a shape is a list of extents, got ${typeName(shape)}`)
  }
  const wrong = shape.find((extent: unknown) => !Number.isSafeInteger(extent) || (extent as number) < 0)
  const count = shape.reduce<number>((product, extent) => product * Number(extent), 1)
  if (wrong !== undefined || shape.includes(undefined) || !Number.isSafeInteger(count)) {
    throw usageError(code(area, 'shape'), `${who}: [${shape.join(', ')}] is no shape`, {
      hint: 'extents are whole numbers from 0',
    })
  }
  return count
}

function expectCount(who: string, area: Area, dtype: DType, shape: readonly number[], found: number, count: number): void {
  if (found === count) return
  throw usageError(code(area, 'data'), `${who}: ${dtype} [${shape.join(', ')}] has ${count} elements, the data has ${found}`)
}
