/**
 * What a store does to a value, in JavaScript and in the IR: int8 rounds to nearest even and saturates to [-127, 127], uint8 saturates
 * to [0, 255]. The same as native/device/convert.cuh. Floats stay as they are computed: what storing them as float16 or bfloat16 loses
 * is part of the tolerance that results are held to. A body's stores say it in the IR, so that a fused kernel that never stores the
 * value still computes what the ops compute one by one; text that stores leaves it out again (src/emit/stored.ts).
 */
import { call, f32, i32 } from './build.js'
import type { DType } from './dtype.js'
import type { Expr } from './expr.js'
import { roundHalfEven } from './intrinsics.js'

/** What int8 holds, symmetric; its lowest number stands for no value. */
export const int8Range = { low: -127, high: 127 } as const
export const uint8Range = { low: 0, high: 255 } as const

const clamp = (value: number, low: number, high: number): number => (value >= low ? Math.min(value, high) : low)

/** What is read back of a value that a body stores. NaN, which integers do not have, becomes the lowest number. */
export function storedNumber(dtype: DType | undefined, value: number): number {
  if (dtype === 'i8') return clamp(roundHalfEven(value), int8Range.low, int8Range.high)
  return dtype === 'u8' ? clamp(value, uint8Range.low, uint8Range.high) : value
}

/**
 * The value as a store to the type leaves it, written out where it is not known to be so already. Elements of a tensor `kept`, which is
 * stored in that type, are.
 */
export function storedExpr(dtype: DType | undefined, value: Expr, kept?: string): Expr {
  const range = dtype === 'i8' ? int8Range : dtype === 'u8' ? uint8Range : undefined
  if (range === undefined || (value.kind === 'load' && value.tensor === kept)) return value
  if (value.kind === 'call' && value.fn === 'select')
    return { ...value, args: value.args.map((arg, i) => (i === 0 ? arg : storedExpr(dtype, arg, kept))) }
  const number = dtype === 'i8' ? f32 : i32
  const whole = dtype === 'u8' || isWhole(value) ? value : call('round', value)
  const below = highest(whole) <= range.high ? whole : call('minimum', whole, number(range.high))
  return lowest(below) >= range.low ? below : call('maximum', below, number(range.low))
}

/** Whether a float is known to be an integer. */
function isWhole(e: Expr): boolean {
  if (e.kind === 'const') return Number.isInteger(e.value)
  if (e.kind !== 'call') return false
  if (['round', 'floor', 'toFloat'].includes(e.fn)) return true
  if (e.fn === 'select') return e.args.slice(1).every(isWhole)
  return (e.fn === 'minimum' || e.fn === 'maximum') && e.args.every(isWhole)
}

/** A number that the value is known not to exceed. */
function highest(e: Expr): number {
  if (e.kind === 'const') return Number(e.value)
  if (e.kind !== 'call') return Number.POSITIVE_INFINITY
  if (e.fn === 'round') return Math.ceil(Math.max(...e.args.map(highest)))
  if (e.fn === 'select') return Math.max(...e.args.slice(1).map(highest))
  if (e.fn === 'minimum') return Math.min(...e.args.map(highest))
  return e.fn === 'maximum' ? Math.max(...e.args.map(highest)) : Number.POSITIVE_INFINITY
}

/** A number that the value is known not to be below. */
function lowest(e: Expr): number {
  if (e.kind === 'const') return Number(e.value)
  if (e.kind !== 'call') return Number.NEGATIVE_INFINITY
  if (e.fn === 'round') return Math.floor(Math.min(...e.args.map(lowest)))
  if (e.fn === 'select') return Math.min(...e.args.slice(1).map(lowest))
  if (e.fn === 'maximum') return Math.max(...e.args.map(lowest))
  return e.fn === 'minimum' ? Math.min(...e.args.map(lowest)) : Number.NEGATIVE_INFINITY
}
