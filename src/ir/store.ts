/**
 * Conversions of stores, in JavaScript and in the IR: int8 rounds to nearest even and saturates to [-127, 127]; other integers saturate
 * to the range of their type, and 8-bit floats to their largest number. The same as native/device/convert.cuh. Other floats are not
 * rounded: the tolerance of results includes the loss of storing them in fewer bits. A body's stores express the conversion in the IR, so
 * that a fused kernel which never stores the value still computes what the separate ops compute. Source that stores omits it again
 * (src/emit/print/rounding.ts). Loads of types wider than int32 yield the nearest int32.
 */
import { call, f32, i32 } from './build.js'
import { type DType, dtypeInfo } from './dtype.js'
import type { Expr } from './expr.js'
import { roundHalfEven } from './intrinsics.js'

export interface Range {
  readonly low: number
  readonly high: number
}

/** Saturation ranges of stores. That of int8 is symmetric: -128 is unused. No int32 is too large for uint32. */
const ranges: Readonly<Partial<Record<DType, Range>>> = {
  i8: { low: -127, high: 127 },
  u8: { low: 0, high: 255 },
  f8e4m3: { low: -448, high: 448 },
  f8e5m2: { low: -57_344, high: 57_344 },
  i16: { low: -32_768, high: 32_767 },
  u32: { low: 0, high: Number.POSITIVE_INFINITY },
}

/** Saturation range of a store to the type; undefined if it does not saturate. */
export const storedRange = (dtype: DType | undefined): Range | undefined => (dtype === undefined ? undefined : ranges[dtype])

const int32Range: Range = { low: -(2 ** 31), high: 2 ** 31 - 1 }

const clamp = (value: number, { low, high }: Range): number => (value >= low ? Math.min(value, high) : low)

/** Value that is read back after a store. NaN, which integers lack, becomes their lowest number. */
export function storedNumber(dtype: DType | undefined, value: number): number {
  const range = storedRange(dtype)
  if (dtype === undefined || range === undefined) return value
  if (dtype === 'i8') return clamp(roundHalfEven(value), range)
  return dtypeInfo[dtype].scalar === 'f32' && Number.isNaN(value) ? value : clamp(value, range)
}

/** True if elements of the type may exceed int32, the type that a body reads. */
export const isWiderThanRead = (dtype: DType | undefined): boolean => dtype === 'u32' || dtype === 'i64'

/** Value that a body reads for an element. */
export const loadedNumber = (dtype: DType | undefined, value: number): number =>
  isWiderThanRead(dtype) ? clamp(value, int32Range) : value

/**
 * The value with the conversion of a store to the type, unless it is known to be converted already. Elements of the tensor `stored`, which
 * has that type, are.
 */
export function storedExpr(dtype: DType | undefined, value: Expr, stored?: string): Expr {
  const range = storedRange(dtype)
  if (dtype === undefined || range === undefined || (value.kind === 'load' && value.tensor === stored)) return value
  if (value.kind === 'call' && value.fn === 'select')
    return { ...value, args: value.args.map((arg, i) => (i === 0 ? arg : storedExpr(dtype, arg, stored))) }
  const number = dtypeInfo[dtype].scalar === 'f32' ? f32 : i32
  const whole = dtype !== 'i8' || isWhole(value) ? value : call('round', value)
  const below = highest(whole) <= range.high ? whole : call('minimum', whole, number(range.high))
  return lowest(below) >= range.low ? below : call('maximum', below, number(range.low))
}

/** True if a float is known to be an integer. */
function isWhole(e: Expr): boolean {
  if (e.kind === 'const') return Number.isInteger(e.value)
  if (e.kind !== 'call') return false
  if (['round', 'floor', 'ceil', 'trunc', 'toFloat'].includes(e.fn)) return true
  if (e.fn === 'select') return e.args.slice(1).every(isWhole)
  return (e.fn === 'minimum' || e.fn === 'maximum') && e.args.every(isWhole)
}

/** Known upper bound of a value. */
function highest(e: Expr): number {
  if (e.kind === 'const') return Number(e.value)
  if (e.kind !== 'call') return Number.POSITIVE_INFINITY
  if (e.fn === 'round') return Math.ceil(Math.max(...e.args.map(highest)))
  if (e.fn === 'select') return Math.max(...e.args.slice(1).map(highest))
  if (e.fn === 'minimum') return Math.min(...e.args.map(highest))
  return e.fn === 'maximum' ? Math.max(...e.args.map(highest)) : Number.POSITIVE_INFINITY
}

/** Known lower bound of a value. */
function lowest(e: Expr): number {
  if (e.kind === 'const') return Number(e.value)
  if (e.kind !== 'call') return Number.NEGATIVE_INFINITY
  if (e.fn === 'round') return Math.floor(Math.min(...e.args.map(lowest)))
  if (e.fn === 'select') return Math.min(...e.args.slice(1).map(lowest))
  if (e.fn === 'maximum') return Math.max(...e.args.map(lowest))
  return e.fn === 'minimum' ? Math.min(...e.args.map(lowest)) : Number.NEGATIVE_INFINITY
}
