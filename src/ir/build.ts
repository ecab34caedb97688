/** Constructors of expressions that infer types, used by the front end and the tests instead of object literals. */
import type { ScalarType } from './dtype.js'
import type { Expr } from './expr.js'
import { type IntrinsicName, intrinsic } from './intrinsics.js'

export const constant = (type: ScalarType, value: number | boolean): Expr => ({ kind: 'const', type, value })
export const i32 = (value: number): Expr => constant('i32', value)
export const f32 = (value: number): Expr => constant('f32', value)
export const index = (name: string): Expr => ({ kind: 'index', type: 'i32', name })
export const dim = (name: string): Expr => ({ kind: 'dim', type: 'i32', name })
export const local = (name: string, type: ScalarType = 'f32'): Expr => ({ kind: 'local', type, name })

/** An integer value as a float; constants convert in place. */
export function toFloat(expr: Expr): Expr {
  if (expr.kind === 'const') return f32(Number(expr.value))
  return { kind: 'call', type: 'f32', fn: 'toFloat', args: [expr] }
}

/** The expression as `type`, converted from i32 to f32 where needed; undefined if another conversion would be needed. */
export function coerce(expr: Expr, type: ScalarType): Expr | undefined {
  if (expr.type === type) return expr
  return expr.type === 'i32' && type === 'f32' ? toFloat(expr) : undefined
}

/** Applies the first signature of an intrinsic that accepts the arguments, exactly or after i32 to f32; undefined if none does. */
export function tryCall(fn: IntrinsicName, args: readonly Expr[]): Expr | undefined {
  for (const { params, result } of intrinsic(fn).signatures) {
    if (params.length !== args.length) continue
    const converted = args.flatMap((arg, i) => coerce(arg, params[i] ?? 'bool') ?? [])
    if (converted.length === args.length) return { kind: 'call', type: result, fn, args: converted }
  }
  return undefined
}

/** `tryCall` for arguments that are known to match. */
export function call(fn: IntrinsicName, ...args: readonly Expr[]): Expr {
  const made = tryCall(fn, args)
  if (made === undefined) throw new Error(`internal: ${fn} takes no (${args.map((arg) => arg.type).join(', ')})`)
  return made
}
