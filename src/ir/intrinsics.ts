/**
 * The one table of scalar operations: operators and intrinsics alike. A row carries everything the compiler knows about
 * an operation: its meaning in plain JavaScript (the oracle, and constant folding), its typing, its CUDA source.
 * Adding an intrinsic is a row here and a one-line export in `src/lang/intrinsics.ts`.
 * All rows are pure: evaluating one twice gives the same value and touches nothing.
 */
import type { ScalarType } from './dtype.js'
import { erf } from './erf.js'
import { bitsOf, floatOfBits } from './float_bits.js'
import { uniform } from './philox.js'

type Value = number | boolean

export interface Signature {
  readonly params: readonly ScalarType[]
  readonly result: ScalarType
}

export interface Intrinsic {
  /** Accepted typings, most specific first. Arguments are never converted except i32 to f32. */
  readonly signatures: readonly Signature[]
  /** Meaning in JavaScript numbers (double precision). Arguments must have the types of a signature. */
  evaluate(...args: readonly Value[]): Value
  /** CUDA source of a call, from the source of its arguments, which are parenthesised where needed. */
  readonly cuda: (args: readonly string[], result: ScalarType) => string
  /** Infix or prefix operator for the IR printer; function-call form when absent. */
  readonly symbol?: string
  /** The device header with the function, if kernel.cuh does not have it: sources that call it include it. */
  readonly header?: string
}

const f1: Signature = { params: ['f32'], result: 'f32' }
const f2: Signature = { params: ['f32', 'f32'], result: 'f32' }
const i1: Signature = { params: ['i32'], result: 'i32' }
const i2: Signature = { params: ['i32', 'i32'], result: 'i32' }
const b2: Signature = { params: ['bool', 'bool'], result: 'bool' }
const compareI: Signature = { params: ['i32', 'i32'], result: 'bool' }
const compareF: Signature = { params: ['f32', 'f32'], result: 'bool' }

const infix = (
  symbol: string,
  signatures: readonly Signature[],
  evaluate: Intrinsic['evaluate'],
  cudaSymbol = symbol,
): Intrinsic => ({ signatures, evaluate, symbol, cuda: ([a, b]) => `(${a} ${cudaSymbol} ${b})` })

/** A quotient by a number that is not a literal calls a function, in which the CPU device reports a division by 0. */
const quotient = (symbol: string, evaluate: Intrinsic['evaluate'], cudaSymbol: string, checked: string): Intrinsic => ({
  signatures: [i2],
  evaluate,
  symbol,
  cuda: ([a = '', b = '']) => (/^[1-9][0-9]*$/.test(b) ? `(${a} ${cudaSymbol} ${b})` : `${checked}(${a}, ${b})`),
})

/** Arithmetic of signed integers must not overflow in C++; unsigned arithmetic wraps. */
const unsigned = (symbol: string, evaluate: Intrinsic['evaluate']): Intrinsic => ({
  signatures: [i2],
  evaluate,
  cuda: ([a, b]) => `static_cast<int>(static_cast<unsigned>(${a}) ${symbol} static_cast<unsigned>(${b}))`,
})

const call = (
  signatures: readonly Signature[],
  evaluate: Intrinsic['evaluate'],
  cuda: string | ((result: ScalarType) => string),
): Intrinsic => ({
  signatures,
  evaluate,
  cuda: (args, result) => `${typeof cuda === 'string' ? cuda : cuda(result)}(${args.join(', ')})`,
})

export const intrinsics = {
  add: infix('+', [i2, f2], (a: number, b: number) => a + b),
  sub: infix('-', [i2, f2], (a: number, b: number) => a - b),
  mul: infix('*', [i2, f2], (a: number, b: number) => a * b),
  /** `/` is always the float quotient, as in JavaScript; integer quotients are `idiv`. */
  div: infix('/', [f2], (a: number, b: number) => a / b),
  idiv: quotient('idiv', (a: number, b: number) => Math.trunc(a / b), '/', 'heddle::quotient'),
  mod: quotient('%', (a: number, b: number) => a % b, '%', 'heddle::remainder'),
  bitAnd: infix('&', [i2], (a: number, b: number) => a & b),
  bitOr: infix('|', [i2], (a: number, b: number) => a | b),
  bitXor: infix('^', [i2], (a: number, b: number) => a ^ b),
  shiftLeft: infix('<<', [i2], (a: number, b: number) => a << b),
  shiftRight: infix('>>', [i2], (a: number, b: number) => a >> b),
  /** Unsigned sums, products and shifts of 32 bits, modulo 2 ** 32, for hashes. A result is the i32 of these bits. */
  wrappingAdd: unsigned('+', (a: number, b: number) => (a + b) | 0),
  wrappingMul: unsigned('*', (a: number, b: number) => Math.imul(a, b)),
  /** Shifts in zeros from the left. By 0 to 31 places. */
  shiftRightUnsigned: {
    signatures: [i2],
    evaluate: (a: number, b: number) => (a >>> b) | 0,
    cuda: ([a, b]) => `static_cast<int>(static_cast<unsigned>(${a}) >> ${b})`,
  },
  lt: infix('<', [compareI, compareF], (a: number, b: number) => a < b),
  le: infix('<=', [compareI, compareF], (a: number, b: number) => a <= b),
  gt: infix('>', [compareI, compareF], (a: number, b: number) => a > b),
  ge: infix('>=', [compareI, compareF], (a: number, b: number) => a >= b),
  eq: infix('===', [compareI, compareF, b2], (a: Value, b: Value) => a === b, '=='),
  ne: infix('!==', [compareI, compareF, b2], (a: Value, b: Value) => a !== b, '!='),
  and: infix('&&', [b2], (a: boolean, b: boolean) => a && b),
  or: infix('||', [b2], (a: boolean, b: boolean) => a || b),
  not: {
    signatures: [{ params: ['bool'], result: 'bool' }],
    evaluate: (a: boolean) => !a,
    symbol: '!',
    cuda: ([a]) => `(!${a})`,
  },
  neg: { signatures: [i1, f1], evaluate: (a: number) => -a, symbol: '-', cuda: ([a]) => `(-${a})` },
  select: {
    signatures: [
      { params: ['bool', 'i32', 'i32'], result: 'i32' },
      { params: ['bool', 'f32', 'f32'], result: 'f32' },
      { params: ['bool', 'bool', 'bool'], result: 'bool' },
    ],
    evaluate: (c: boolean, a: Value, b: Value) => (c ? a : b),
    cuda: ([c, a, b]) => `(${c} ? ${a} : ${b})`,
  },
  toFloat: {
    signatures: [{ params: ['i32'], result: 'f32' }],
    evaluate: (a: number) => a,
    cuda: ([a]) => `static_cast<float>(${a})`,
  },
  /** Truncates toward zero. Values outside int32 become its nearest number, NaN becomes 0. */
  toInt: {
    signatures: [{ params: ['f32'], result: 'i32' }],
    evaluate: (a: number) => (Number.isNaN(a) ? 0 : Math.min(Math.max(Math.trunc(a), -(2 ** 31)), 2 ** 31 - 1)),
    cuda: ([a]) => `__float2int_rz(${a})`,
  },
  /** The 32 bits of a value as a float32; for any NaN those of JavaScript's NaN, so that results do not depend on the device. */
  bitsOf: {
    ...call([{ params: ['f32'], result: 'i32' }], (a: number) => bitsOf(a), 'heddle::bits_of'),
    header: 'scalars.cuh',
  },
  /** The float32 with these 32 bits. */
  floatOfBits: call([{ params: ['i32'], result: 'f32' }], (a: number) => floatOfBits(a), '__int_as_float'),
  abs: call(
    [i1, f1],
    (a: number) => Math.abs(a),
    (r) => (r === 'i32' ? 'abs' : 'fabsf'),
  ),
  /** NaN if either is NaN, as `minimum` and `maximum` of IEEE 754-2019 (C's fminf and fmaxf drop it). */
  minimum: call(
    [i2, f2],
    (a: number, b: number) => Math.min(a, b),
    (r) => (r === 'i32' ? 'min' : 'heddle::smaller'),
  ),
  maximum: call(
    [i2, f2],
    (a: number, b: number) => Math.max(a, b),
    (r) => (r === 'i32' ? 'max' : 'heddle::larger'),
  ),
  square: call([f1], (a: number) => a * a, 'heddle::square'),
  sqrt: call([f1], (a: number) => Math.sqrt(a), 'sqrtf'),
  rsqrt: call([f1], (a: number) => 1 / Math.sqrt(a), 'rsqrtf'),
  exp: call([f1], (a: number) => Math.exp(a), 'expf'),
  /** Exact for integers, and `log2` for powers of two: the C library guarantees neither. */
  exp2: { ...call([f1], (a: number) => 2 ** a, 'heddle::exp2'), header: 'scalars.cuh' },
  expm1: call([f1], (a: number) => Math.expm1(a), 'expm1f'),
  log: call([f1], (a: number) => Math.log(a), 'logf'),
  log2: { ...call([f1], (a: number) => Math.log2(a), 'heddle::log2'), header: 'scalars.cuh' },
  log10: call([f1], (a: number) => Math.log10(a), 'log10f'),
  log1p: call([f1], (a: number) => Math.log1p(a), 'log1pf'),
  sin: call([f1], (a: number) => Math.sin(a), 'sinf'),
  cos: call([f1], (a: number) => Math.cos(a), 'cosf'),
  tanh: call([f1], (a: number) => Math.tanh(a), 'heddle::tanh'),
  erf: call([f1], (a: number) => erf(a), 'heddle::erf'),
  /** x times the normal distribution function of x. */
  gelu: call([f1], (a: number) => 0.5 * a * (1 + erf(a * Math.SQRT1_2)), 'heddle::gelu'),
  pow: call([f2], (a: number, b: number) => a ** b, 'powf'),
  floor: call([f1], (a: number) => Math.floor(a), 'floorf'),
  ceil: call([f1], (a: number) => Math.ceil(a), 'ceilf'),
  /** Toward zero; `toInt` gives the integer. */
  trunc: call([f1], (a: number) => Math.trunc(a), 'truncf'),
  /** A number in (0, 1), determined by two words of seed and a counter. */
  uniform: call(
    [{ params: ['i32', 'i32', 'i32'], result: 'f32' }],
    (low: number, high: number, counter: number) => uniform(low, high, counter),
    'heddle::uniform',
  ),
  /** Nearest integer, ties to even. */
  round: call([f1], (a: number) => roundHalfEven(a), 'rintf'),
} as const satisfies Record<string, Intrinsic>

export type IntrinsicName = keyof typeof intrinsics

/** Functions that take as long as about ten additions, or longer. */
export const slowIntrinsics: ReadonlySet<IntrinsicName> = new Set([
  ...(['exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'pow'] as const),
  ...(['sin', 'cos', 'tanh', 'erf', 'gelu', 'uniform'] as const),
])

/** Nearest integer, ties to even. */
export function roundHalfEven(a: number): number {
  const down = Math.floor(a)
  const rest = a - down
  if (rest < 0.5) return down
  if (rest > 0.5) return down + 1
  return down % 2 === 0 ? down : down + 1
}

/** Looks up a row by name, with the table's common type. */
export const intrinsic = (name: IntrinsicName): Intrinsic => intrinsics[name]

export const isIntrinsicName = (name: string): name is IntrinsicName => Object.hasOwn(intrinsics, name)
