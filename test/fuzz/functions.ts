/** The meaning of operators and functions over intervals: integers of 32 bits, floats in float64. Written apart from src. */
import { flushed, functionErrors } from './bounds.js'
import type { Expr } from './describe.js'
import type { Val } from './value.js'
import * as value from './value.js'

const lowest = -(2 ** 31)
const highest = 2 ** 31 - 1

/** The error function by its series, or by a continued fraction of its complement where that converges faster. */
export function erf(x: number): number {
  const t = Math.abs(x)
  if (Number.isNaN(x) || t === 0) return x
  if (t > 6) return Math.sign(x)
  if (t < 2.5) {
    let [term, sum] = [x, x]
    for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
      term *= -(x * x) / n
      sum += term / (2 * n + 1)
      if (n > 200) break
    }
    return (2 / Math.sqrt(Math.PI)) * sum
  }
  let fraction = 0
  for (let n = 60; n > 0; n--) fraction = n / 2 / (t + fraction)
  return Math.sign(x) * (1 - Math.exp(-t * t) / Math.sqrt(Math.PI) / (t + fraction))
}

/** Philox 4x32 with ten rounds, as Random123 has it: the first word of the block of a counter under a key. */
function philox(low: number, high: number, counter: number): number {
  const mask = 0xffffffffn
  let [a, b, c, d] = [BigInt(counter >>> 0), 0n, 0n, 0n]
  let [k0, k1] = [BigInt(low >>> 0), BigInt(high >>> 0)]
  for (let round = 0; round < 10; round++) {
    const [first, second] = [a * 0xd2511f53n, c * 0xcd9e8d57n]
    ;[a, b, c, d] = [(second >> 32n) ^ b ^ k0, second & mask, (first >> 32n) ^ d ^ k1, first & mask]
    k0 = (k0 + 0x9e3779b9n) & mask
    k1 = (k1 + 0xbb67ae85n) & mask
  }
  return Number(a)
}
const uniform = (low: number, high: number, counter: number): number =>
  (Math.floor(philox(low, high, counter) / 512) + 0.5) / 2 ** 23

/** Known integers; values beyond int32 are undefined. */
function integers(f: (...args: readonly number[]) => number, args: readonly Val[]): Val {
  const v = f(...args.map((arg) => arg.v))
  return args.every(value.isExact) && v >= lowest && v <= highest && Number.isInteger(v) ? value.exact(v) : value.unknown(v)
}

/** Sums and choices of integers that may be one of several. */
function spread(made: Val): Val {
  return made.lo >= lowest && made.hi <= highest ? made : value.unknown(made.v)
}

const integerFunctions: Readonly<Record<string, (...args: readonly number[]) => number>> = {
  mul: (a = 0, b = 0) => a * b + 0,
  idiv: (a = 0, b = 0) => Math.trunc(a / b) + 0,
  mod: (a = 0, b = 0) => (a % b) + 0,
  bitAnd: (a = 0, b = 0) => a & b,
  bitOr: (a = 0, b = 0) => a | b,
  bitXor: (a = 0, b = 0) => a ^ b,
  shiftLeft: (a = 0, b = 0) => a * 2 ** b,
  shiftRight: (a = 0, b = 0) => Math.floor(a / 2 ** b),
  shiftRightUnsigned: (a = 0, b = 0) => (a >>> b) | 0,
  wrappingAdd: (a = 0, b = 0) => (a + b) | 0,
  wrappingMul: (a = 0, b = 0) => Number(BigInt.asIntN(32, BigInt(a) * BigInt(b))),
  abs: (a = 0) => Math.abs(a),
}

const spreadFunctions: Readonly<Record<string, (a: Val, b: Val) => Val>> = {
  add: (a, b) => ({ v: a.v + b.v, lo: a.lo + b.lo, hi: a.hi + b.hi }),
  sub: (a, b) => ({ v: a.v - b.v, lo: a.lo - b.hi, hi: a.hi - b.lo }),
  minimum: value.minimum,
  maximum: value.maximum,
  neg: (a) => ({ v: 0 - a.v, lo: 0 - a.hi, hi: 0 - a.lo }),
}

const floatFunctions: Readonly<Record<string, (a: Val, b: Val) => Val>> = {
  add: value.add,
  sub: value.sub,
  mul: value.mul,
  div: value.div,
  neg: value.neg,
  abs: value.abs,
  minimum: value.minimum,
  maximum: value.maximum,
  square: value.square,
  sqrt: value.sqrt,
  floor: value.floor,
  round: value.round,
  rsqrt: (a) => value.within('rsqrt', (x) => 1 / Math.sqrt(x), a, 0),
  exp: (a) => value.within('exp', Math.exp, a),
  log: (a) => value.within('log', Math.log, a, 0),
  sin: (a) => value.within('sin', Math.sin, a),
  cos: (a) => value.within('cos', Math.cos, a),
  tanh: (a) => value.within('tanh', Math.tanh, a),
  erf: (a) => value.within('erf', erf, a),
  gelu: (a) => value.within('gelu', gelu, a),
  // Random bases are positive; the power rises or falls with them.
  ceil: value.ceil,
  trunc: value.trunc,
  expm1: (a) => value.within('expm1', Math.expm1, a),
  log1p: (a) => value.within('log1p', Math.log1p, a, -1),
  log10: (a) => value.within('log10', Math.log10, a, 0),
  exp2,
  log2,
  floatOfBits: (a) => (value.isExact(a) ? value.exact(floatOfBits(a.v)) : value.unknown(Number.NaN)),
  pow: (a, b) =>
    value.isExact(b) && a.lo > 0 && Number.isFinite(a.hi)
      ? value.within('pow', (x) => x ** b.v, a, 0)
      : value.unknown(a.v ** b.v),
}

/** A power of two, exact for an integer exponent. */
function exp2(a: Val): Val {
  const isKnown = value.isExact(a) && Number.isInteger(a.v) && a.v >= -126 && a.v <= 127
  return isKnown ? value.exact(2 ** a.v) : value.within('exp2', (x) => 2 ** x, a)
}

/** The exponent of a power of two, exact. */
function log2(a: Val): Val {
  const exponent = Math.round(Math.log2(a.v))
  const isKnown = value.isExact(a) && a.v >= flushed && 2 ** exponent === a.v
  return isKnown ? value.exact(exponent) : value.within('log2', Math.log2, a, 0)
}

const words = new DataView(new ArrayBuffer(4))

/** The bits of the float32 that a number is; of every NaN the same. */
function bitsOf(a: Val): Val {
  if (!value.isExact(a) || (!Number.isNaN(a.v) && Math.fround(a.v) !== a.v)) return value.unknown(0)
  words.setFloat32(0, a.v)
  return value.exact(Number.isNaN(a.v) ? 0x7fc00000 : words.getInt32(0))
}
function floatOfBits(word: number): number {
  words.setInt32(0, word)
  return words.getFloat32(0)
}

function gelu(x: number): number {
  if (Math.abs(x) === Number.POSITIVE_INFINITY) return x > 0 ? x : Number.NaN
  return 0.5 * x * (1 + erf(x * Math.SQRT1_2))
}

/** Applies a function of the language. evaluate.ts handles selections and logic, and evaluates no more than the language does. */
export function apply(e: Expr & { readonly kind: 'call' }, args: readonly Val[]): Val {
  const [a = value.unknown(0), b = value.unknown(0), c = value.unknown(0)] = args
  const { fn } = e
  if (['lt', 'le', 'gt', 'ge', 'eq', 'ne'].includes(fn)) return value.compare(fn, a, b)
  if (fn === 'toFloat')
    return value.isUnknown(a) ? a : Math.fround(a.lo) === a.lo && Math.fround(a.hi) === a.hi ? a : value.rounded(a.v, a.lo, a.hi)
  if (fn === 'toInt') return value.toInt(a)
  if (fn === 'bitsOf') return bitsOf(a)
  if (fn === 'uniform') {
    if (![a, b, c].every(value.isExact)) return value.unknown(0.5)
    const v = uniform(a.v, b.v, c.v)
    return value.rounded(v, v, v, functionErrors.uniform?.roundings)
  }
  if (e.type === 'i32') {
    const several = spreadFunctions[fn]
    if (several !== undefined) return spread(several(a, b))
    const single = integerFunctions[fn]
    if (single === undefined) throw new Error(`no integer function ${fn}`)
    return integers(single, args)
  }
  const f = floatFunctions[fn]
  if (f === undefined) throw new Error(`no function ${fn}`)
  return f(a, b)
}
