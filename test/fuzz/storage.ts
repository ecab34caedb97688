/** Storage types as their standards define them: rounding, saturation, and the bits on the host. Written apart from src. */
import type { DType } from './describe.js'

interface FloatFormat {
  readonly exponentBits: number
  readonly mantissaBits: number
  readonly max: number
  /** Makes the largest number of larger ones, and not infinity. */
  readonly saturates: boolean
  /** True if the highest exponent represents numbers except for one code, as in E4M3 of OCP. */
  readonly finite: boolean
}

const formats: Readonly<Partial<Record<DType, FloatFormat>>> = {
  f16: { exponentBits: 5, mantissaBits: 10, max: 65_504, saturates: false, finite: false },
  bf16: { exponentBits: 8, mantissaBits: 7, max: (2 - 2 ** -7) * 2 ** 127, saturates: false, finite: false },
  f8e4m3: { exponentBits: 4, mantissaBits: 3, max: 448, saturates: true, finite: true },
  f8e5m2: { exponentBits: 5, mantissaBits: 2, max: 57_344, saturates: true, finite: false },
}

/** The integers that a store to each type may leave; int8 is symmetric. */
const ranges: Readonly<Partial<Record<DType, readonly [number, number]>>> = {
  i8: [-127, 127],
  u8: [0, 255],
  i16: [-32_768, 32_767],
  u32: [0, 2 ** 31 - 1],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  i64: [-(2 ** 31), 2 ** 31 - 1],
  bool: [0, 1],
}

/** The nearest integer; the even one of two. */
export function nearestEven(x: number): number {
  if (!Number.isFinite(x)) return x
  const down = Math.floor(x)
  const rest = x - down
  if (rest !== 0.5) return rest < 0.5 ? down : down + 1
  return down % 2 === 0 ? down : down + 1
}

const biasOf = ({ exponentBits }: FloatFormat): number => 2 ** (exponentBits - 1) - 1

function roundFloat(x: number, format: FloatFormat): number {
  if (Number.isNaN(x) || x === 0) return x
  const { mantissaBits, max, saturates } = format
  if (Math.abs(x) === Number.POSITIVE_INFINITY) return saturates ? Math.sign(x) * max : x
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), 1 - biasOf(format))
  const step = 2 ** (exponent - mantissaBits)
  const rounded = nearestEven(x / step) * step
  if (Math.abs(rounded) <= max) return rounded
  return Math.sign(x) * (saturates ? max : Number.POSITIVE_INFINITY)
}

/** Rounds and saturates a number that is stored. NaN becomes the lowest integer of an integer type. */
export function stored(dtype: DType, x: number): number {
  if (dtype === 'f32') return Math.fround(x)
  const format = formats[dtype]
  if (format !== undefined) return roundFloat(x, format)
  const [low, high] = ranges[dtype] ?? [0, 0]
  if (Number.isNaN(x)) return low
  return Math.min(Math.max(dtype === 'i8' ? nearestEven(x) : x, low), high)
}

function bitsOf(x: number, format: FloatFormat): number {
  const { exponentBits, mantissaBits, finite } = format
  const top = 2 ** exponentBits - 1
  const sign = x < 0 || Object.is(x, -0) ? 2 ** (exponentBits + mantissaBits) : 0
  const size = Math.abs(x)
  if (Number.isNaN(x)) return top * 2 ** mantissaBits + (finite ? 2 ** mantissaBits - 1 : 2 ** (mantissaBits - 1))
  if (size === Number.POSITIVE_INFINITY) return sign + top * 2 ** mantissaBits
  if (size === 0) return sign
  const lowest = 1 - biasOf(format)
  const exponent = Math.max(Math.floor(Math.log2(size)), lowest)
  const mantissa = size / 2 ** (exponent - mantissaBits)
  return sign + (exponent - lowest) * 2 ** mantissaBits + mantissa
}

function numberOf(bits: number, format: FloatFormat): number {
  const { exponentBits, mantissaBits, finite } = format
  const places = exponentBits + mantissaBits
  const sign = bits >= 2 ** places ? -1 : 1
  const code = bits % 2 ** places
  const exponent = Math.floor(code / 2 ** mantissaBits)
  const mantissa = code % 2 ** mantissaBits
  const isTop = exponent === 2 ** exponentBits - 1
  if (isTop && !finite) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  if (isTop && mantissa === 2 ** mantissaBits - 1) return Number.NaN
  const lowest = 1 - biasOf(format)
  if (exponent === 0) return sign * mantissa * 2 ** (lowest - mantissaBits)
  return sign * (2 ** mantissaBits + mantissa) * 2 ** (exponent - 1 + lowest - mantissaBits)
}

export type HostData = Float32Array | Uint16Array | Uint8Array | Int32Array | Int16Array | Int8Array | Uint32Array | BigInt64Array

/** The host array with numbers of a type, all within its range. */
export function encode(dtype: DType, values: readonly number[]): HostData {
  const bits = (format: FloatFormat | undefined): number[] => {
    if (format === undefined) throw new Error(`${dtype} has no bits of floats`)
    return values.map((x) => bitsOf(x, format))
  }
  switch (dtype) {
    case 'f32':
      return Float32Array.from(values)
    case 'f16':
    case 'bf16':
      return Uint16Array.from(bits(formats[dtype]))
    case 'f8e4m3':
    case 'f8e5m2':
      return Uint8Array.from(bits(formats[dtype]))
    case 'i32':
      return Int32Array.from(values)
    case 'i16':
      return Int16Array.from(values)
    case 'i8':
      return Int8Array.from(values)
    case 'u8':
      return Uint8Array.from(values)
    case 'u32':
      return Uint32Array.from(values)
    case 'i64':
      return BigInt64Array.from(values, BigInt)
    // Every nonzero byte is true on the host.
    case 'bool':
      return Uint8Array.from(values, (x, at) => (x === 0 ? 0 : ([1, 2, 255][at % 3] ?? 1)))
  }
}

/** The numbers that an array of the host holds. */
export function decode(dtype: DType, data: ArrayLike<number | bigint>): number[] {
  const format = formats[dtype]
  return Array.from(data, (x) => (format === undefined ? Number(x) : numberOf(Number(x), format)))
}

/** The largest, the smallest normal and the smallest number of a float type. */
export function extremes(dtype: DType): readonly number[] {
  if (dtype === 'f32') return [(2 - 2 ** -23) * 2 ** 127, 2 ** -126, 2 ** -149]
  const format = formats[dtype]
  if (format === undefined) return []
  const lowest = 2 ** (1 - biasOf(format))
  return [format.max, lowest, lowest * 2 ** -format.mantissaBits]
}

/** True if the type has infinities. */
export const hasInfinity = (dtype: DType): boolean => dtype !== 'f8e4m3'
