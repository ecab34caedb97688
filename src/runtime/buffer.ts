/**
 * Conversion between host arrays and the bytes of a tensor. All float types are Float32Array on the host. Every rounding is to nearest, ties to even,
 * as on the device. 64-bit integers are doubles here, which are exact up to 2^53.
 */
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { type Float8, f8e4m3Codes, f8e5m2Codes } from './float8.js'
import type { NativeBuffer } from './native.js'

/** Host array of each storage type. */
export interface HostArrays {
  readonly f32: Float32Array
  readonly f16: Float32Array
  readonly bf16: Float32Array
  readonly i32: Int32Array
  readonly i8: Int8Array
  readonly u8: Uint8Array
  readonly f8e4m3: Float32Array
  readonly f8e5m2: Float32Array
  readonly i16: Int16Array
  readonly u32: Uint32Array
  /** Exact up to 2^53, and the nearest double beyond. */
  readonly i64: Float64Array
  readonly bool: Uint8Array
}

interface Codec<D extends DType> {
  readonly array: abstract new (...args: never[]) => HostArrays[D]
  /** @param into memory that the result may use, large enough for it */
  encode(values: HostArrays[D], into?: ArrayBuffer): Uint8Array
  /** `bytes` is aligned to the element. */
  decode(bytes: Uint8Array, into?: ArrayBuffer): HostArrays[D]
}

const bytesOf = (values: ArrayBufferView): Uint8Array => new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
const halvesOf = (bytes: Uint8Array): Uint16Array => new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)

/** Applies a rounding of float32 bits to 16 bits. */
function encode16(values: Float32Array, round: (bits: number) => number, into?: ArrayBuffer): Uint8Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  const halves = new Uint16Array(into ?? new ArrayBuffer(2 * values.length), 0, values.length)
  for (let i = 0; i < halves.length; i++) halves[i] = round(bits[i] ?? 0)
  return bytesOf(halves)
}

let widened: Uint32Array | undefined

/** Table of all binary16 values as float32 bits: a lookup takes a quarter of the time of the computation. */
function widenedF16(): Uint32Array {
  widened ??= Uint32Array.from({ length: 2 ** 16 }, (_, half) => widenF16(half))
  return widened
}

function decodeF16(bytes: Uint8Array, into?: ArrayBuffer): Float32Array {
  const halves = halvesOf(bytes)
  const bits = new Uint32Array(into ?? new ArrayBuffer(4 * halves.length), 0, halves.length)
  const table = widenedF16()
  for (let i = 0; i < bits.length; i++) bits[i] = table[halves[i] ?? 0] ?? 0
  return new Float32Array(bits.buffer, 0, bits.length)
}

function decodeBf16(bytes: Uint8Array, into?: ArrayBuffer): Float32Array {
  const halves = halvesOf(bytes)
  const bits = new Int32Array(into ?? new ArrayBuffer(4 * halves.length), 0, halves.length)
  // Two values per load, if they are aligned.
  const pairs = halves.byteOffset % 4 === 0 ? new Int32Array(halves.buffer, halves.byteOffset, halves.length >>> 1) : undefined
  const paired = 2 * (pairs?.length ?? 0)
  if (pairs !== undefined) {
    for (let i = 0, j = 0; i < pairs.length; i++, j += 2) {
      const pair = pairs[i] ?? 0
      bits[j] = pair << 16
      bits[j + 1] = pair & 0xffff_0000
    }
  }
  for (let i = paired; i < bits.length; i++) bits[i] = (halves[i] ?? 0) << 16
  return new Float32Array(bits.buffer, 0, bits.length)
}

const codec8 = ({ round, values }: Float8): Codec<'f8e4m3'> & Codec<'f8e5m2'> => ({
  array: Float32Array,
  encode: (given) => {
    const bits = new Uint32Array(given.buffer, given.byteOffset, given.length)
    return Uint8Array.from(bits, round)
  },
  decode: (bytes) => Float32Array.from(bytes, (code) => values[code] ?? Number.NaN),
})

/** Double to a 64-bit integer: the fraction is truncated, NaN becomes 0, and values out of range saturate. */
const toInt64 = (value: number): bigint =>
  Number.isNaN(value) ? 0n : BigInt(Math.trunc(Math.max(-(2 ** 63), Math.min(value, 2 ** 63 - 1024))))

/** Float32 bits to IEEE 754 binary16 bits. A NaN becomes a quiet NaN. */
function roundToF16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >>> 13) & 0x3ff)
  // From 65520 on the nearest binary16 is infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00
  // From 2^-14 on the result is normal: rebias the exponent and round off the low 13 bits; a carry moves into the exponent.
  if (magnitude >= 0x38800000) return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13)
  // At most half the smallest subnormal, 2^-25.
  if (magnitude <= 0x33000000) return sign
  const significand = (magnitude & 0x7fffff) | 0x800000
  const shift = 126 - (magnitude >>> 23)
  const kept = significand >>> shift
  const rest = significand & ((1 << shift) - 1)
  const half = 1 << (shift - 1)
  return sign | (kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0))
}

/** Binary16 bits to float32 bits, without rounding. */
function widenF16(half: number): number {
  const sign = (half & 0x8000) << 16
  const exponent = (half >>> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0x1f) return sign | 0x7f800000 | (fraction << 13)
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (fraction << 13)
  if (fraction === 0) return sign
  // Subnormal: shift the leading bit to its position in a normal number.
  const shift = Math.clz32(fraction) - 21
  return sign | ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x7fffff)
}

/** Float32 bits to bfloat16 bits. A NaN becomes a quiet NaN. */
function roundToBf16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40
  return ((bits >>> 0) + 0x7fff + ((bits >>> 16) & 1)) >>> 16
}

const codecs: { readonly [D in DType]: Codec<D> } = {
  f32: {
    array: Float32Array,
    encode: bytesOf,
    decode: (bytes) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  },
  f16: { array: Float32Array, encode: (values, into) => encode16(values, roundToF16, into), decode: decodeF16 },
  bf16: { array: Float32Array, encode: (values, into) => encode16(values, roundToBf16, into), decode: decodeBf16 },
  i32: {
    array: Int32Array,
    encode: bytesOf,
    decode: (bytes) => new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  },
  i8: { array: Int8Array, encode: bytesOf, decode: (bytes) => new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) },
  u8: { array: Uint8Array, encode: bytesOf, decode: (bytes) => bytes },
  bool: { array: Uint8Array, encode: bytesOf, decode: (bytes) => bytes },
  f8e4m3: codec8(f8e4m3Codes),
  f8e5m2: codec8(f8e5m2Codes),
  i16: {
    array: Int16Array,
    encode: bytesOf,
    decode: (bytes) => new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2),
  },
  u32: {
    array: Uint32Array,
    encode: bytesOf,
    decode: (bytes) => new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  },
  i64: {
    array: Float64Array,
    encode: (values) => bytesOf(BigInt64Array.from(values, toInt64)),
    decode: (bytes) => Float64Array.from(new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8), Number),
  },
}

/**
 * Encodes host values as storage bytes. Types with the same representation on the host share the array's memory instead of copying it.
 * @param into memory for values of 16-bit floats: fresh memory takes longer than the rounding
 * @throws usage `buffer.values` for the wrong kind of array
 */
export function encode<D extends DType>(dtype: D, values: HostArrays[D], into?: ArrayBuffer): Uint8Array {
  const codec = codecs[dtype]
  if (!(values instanceof codec.array)) {
    throw usageError(
      'buffer.values',
      `${dtype} values: expected a ${codec.array.name}, got ${Object.prototype.toString.call(values)}`,
    )
  }
  return codec.encode(values, into)
}

/**
 * Decodes storage bytes to host values. May share the bytes' memory.
 * @param into memory for values of 16-bit floats
 * @throws usage `buffer.bytes` if the bytes are not whole elements
 */
export function decode<D extends DType>(dtype: D, bytes: Uint8Array, into?: ArrayBuffer): HostArrays[D] {
  const size = dtypeInfo[dtype].bytes
  if (bytes.byteLength % size !== 0) {
    throw usageError('buffer.bytes', `${bytes.byteLength} bytes are not whole ${dtype} elements of ${size} bytes`)
  }
  return codecs[dtype].decode(bytes.byteOffset % size === 0 ? bytes : bytes.slice(), into)
}

/** Rounds host values to a storage type and copies them into a buffer at a byte offset. */
export const upload = <D extends DType>(buffer: NativeBuffer, offset: number, dtype: D, values: HostArrays[D]): Promise<void> =>
  buffer.write(offset, encode(dtype, values))

/** Reads `count` elements of a buffer, starting at a byte offset. */
export const download = async <D extends DType>(
  buffer: NativeBuffer,
  offset: number,
  dtype: D,
  count: number,
): Promise<HostArrays[D]> => decode(dtype, await buffer.read(offset, count * dtypeInfo[dtype].bytes))
