/**
 * Functions that a body may call besides those of its own subset. Each export runs the table's JavaScript meaning and carries
 * its name in its type, so that the front end recognises it through any import, alias or re-export.
 */
import { type HeddleError, usageError } from '../errors.js'
import { sortPlaces } from '../ir/argsort.js'
import { type IntrinsicName, intrinsics } from '../ir/intrinsics.js'
import { countValues, type MonoidName, monoids } from '../ir/monoids.js'
import { rankValues } from '../ir/top_k.js'
import type { Mask, Row } from './types.js'

/** The brand that the front end reads from a callee's type. */
export interface Branded<Kind extends string, Name extends string> {
  readonly heddle: { readonly kind: Kind; readonly name: Name }
}

type Unary = (a: number) => number
type Binary = (a: number, b: number) => number
type Ternary = (a: number, b: number, c: number) => number

/** Error for a missing argument of a call, for authors in untyped JavaScript; with types it does not compile. */
const noArgument = (call: string, wanted: string, given: unknown): HeddleError =>
  usageError('run.argument', `${call}: ${wanted} is ${given === null ? 'null' : typeof given}`, {
    hint: `write ${call.replace(/\(.*/, '')}(n, (c) => x(m, c)): the length of a row, and a function of its elements`,
  })

/** @throws usage `run.argument` if the length is not a number or the elements are not a function */
function expectRow(name: string, length: number, value: Row | Mask): void {
  if (typeof length !== 'number') throw noArgument(`${name}(...)`, 'its length', length)
  if (typeof value !== 'function') throw noArgument(`${name}(${length}, ...)`, 'the function of its elements', value)
}

function scalar<const Name extends IntrinsicName, F>(name: Name): F & Branded<'intrinsic', Name> {
  const meaning = (...args: never[]) => intrinsics[name].evaluate(...(args as [never, never, never]))
  return Object.assign(meaning, { heddle: { kind: 'intrinsic', name } as const }) as F & Branded<'intrinsic', Name>
}

function reduction<const Name extends MonoidName>(
  name: Name,
): ((length: number, value: Row) => number) & Branded<'reduction', Name> {
  const meaning = (length: number, value: Row): number => {
    expectRow(name, length, value)
    return monoids[name].evaluate(length, value)
  }
  return Object.assign(meaning, { heddle: { kind: 'reduction', name } as const })
}

export const abs = scalar<'abs', Unary>('abs')
export const square = scalar<'square', Unary>('square')
export const sqrt = scalar<'sqrt', Unary>('sqrt')
export const rsqrt = scalar<'rsqrt', Unary>('rsqrt')
export const exp = scalar<'exp', Unary>('exp')
/** 2 to the power of x; exact if x is an integer. */
export const exp2 = scalar<'exp2', Unary>('exp2')
/** e to the power of x, minus 1, accurate near 0. */
export const expm1 = scalar<'expm1', Unary>('expm1')
export const log = scalar<'log', Unary>('log')
/** The logarithm to base 2; exact if x is a power of two. */
export const log2 = scalar<'log2', Unary>('log2')
export const log10 = scalar<'log10', Unary>('log10')
/** The logarithm of 1 + x, accurate near 0. */
export const log1p = scalar<'log1p', Unary>('log1p')
export const sin = scalar<'sin', Unary>('sin')
export const cos = scalar<'cos', Unary>('cos')
export const tanh = scalar<'tanh', Unary>('tanh')
export const erf = scalar<'erf', Unary>('erf')
/** x times the normal distribution function of x: 0.5 x (1 + erf(x / sqrt 2)), in fewer instructions than that formula. */
export const gelu = scalar<'gelu', Unary>('gelu')
export const floor = scalar<'floor', Unary>('floor')
export const ceil = scalar<'ceil', Unary>('ceil')
/** Rounds toward zero and stays a float; `toInt` gives the integer. */
export const trunc = scalar<'trunc', Unary>('trunc')
export const round = scalar<'round', Unary>('round')
export const pow = scalar<'pow', Binary>('pow')
/** The smaller, the larger of two values (rows are reduced by `min` and `max`); NaN if either is NaN. */
export const minimum = scalar<'minimum', Binary>('minimum')
export const maximum = scalar<'maximum', Binary>('maximum')
/** Integer quotient, rounded toward zero. `/` is always the float quotient. */
export const idiv = scalar<'idiv', Binary>('idiv')
/**
 * Float to integer, rounded toward zero; the only conversion from a float to an index. Outside the range of int32 it is the nearest number
 * of that range, for NaN it is 0.
 */
export const toInt = scalar<'toInt', Unary>('toInt')
export const toFloat = scalar<'toFloat', Unary>('toFloat')
/**
 * The 32 bits of a float, as a signed integer: those of 1 are 0x3f800000. On a device they are the bits of the float32 argument; under Node,
 * which computes in doubles, of the float32 nearest to it. For any NaN they are 0x7fc00000.
 */
export const bitsOf = scalar<'bitsOf', Unary>('bitsOf')
/** The float32 with these 32 bits: `floatOfBits(bitsOf(x))` is x as a float32. A literal of 0x80000000 or more is the integer of its bits. */
export const floatOfBits = scalar<'floatOfBits', Unary>('floatOfBits')
/**
 * Sums and products modulo 2 ** 32, and a shift that brings in zeros, for hashes and generators of random numbers. Integers of a
 * body are signed and have 32 bits; these functions take and return the bits. Literals of 0x80000000 and more are the integers of their bits.
 */
export const wrappingAdd = scalar<'wrappingAdd', Binary>('wrappingAdd')
export const wrappingMul = scalar<'wrappingMul', Binary>('wrappingMul')
export const shiftRightUnsigned = scalar<'shiftRightUnsigned', Binary>('shiftRightUnsigned')
/**
 * A random number strictly between 0 and 1, the same on every draw and device: `uniform(seedLow, seedHigh, counter)` takes two
 * integers of seed and the number of the draw, and uses Philox 4x32-10.
 */
export const uniform = scalar<'uniform', Ternary>('uniform')

/** Reductions over a row: `sum(n, (c) => x(m, c))`. */
export const sum = reduction('sum')
/** NaN if any element is NaN; of an empty row, `max` is -Infinity and `min` is Infinity. */
export const max = reduction('max')
export const min = reduction('min')
/** Index of the largest (smallest) element; the lowest index among equals. NaN is never picked: without any other element it is 0. */
export const argmax = reduction('argmax')
export const argmin = reduction('argmin')

/** A row of numbers, or of conditions. */
interface MakeRow {
  (length: number, value: Row): Row
  (length: number, value: Mask): Mask
}

const rowOf =
  (elements: ArrayLike<number>): Row =>
  (index) => {
    const element = elements[index]
    if (element === undefined) throw new RangeError(`index ${index} is outside the row of ${elements.length} elements`)
    return element
  }

function makeRow(length: number, value: Row): Row
function makeRow(length: number, value: Mask): Mask
function makeRow(length: number, value: Row | Mask): Row | Mask {
  expectRow('row', length, value)
  let isMask = false
  const elements = Float64Array.from({ length }, (_, index) => {
    const element = value(index)
    isMask ||= typeof element === 'boolean'
    return Number(element)
  })
  const numbers = rowOf(elements)
  return isMask ? (index) => numbers(index) !== 0 : numbers
}

/** A row value of `length` elements: `row(n, (c) => ...)`. Elements are computed once, in order. */
export const row: MakeRow & Branded<'row', 'row'> = Object.assign(makeRow, { heddle: { kind: 'row', name: 'row' } as const })

/**
 * The inclusive prefix sums of a row: element `c` of `scan(n, (c) => x(m, c))` is the sum of elements 0 to c. With
 * `const ends = scan(...)`, the sum of those before c is `ends(c) - x(m, c)`, that of all is `sum`. On a device, threads combine floats
 * in an order that depends on the row's length only. An element read at another position than the index of its loop is summed again there.
 */
export const scan: ((length: number, value: Row) => Row) & Branded<'scan', 'sum'> = Object.assign(
  (length: number, value: Row): Row => {
    expectRow('scan', length, value)
    return rowOf(monoids.sum.scan(length, value))
  },
  { heddle: { kind: 'scan', name: 'sum' } as const },
)

/**
 * Counts the integers of a row: element b of `histogram(bins, n, (c) => toInt(x(m, c)))` is the number of them that equal b. Integers outside
 * [0, bins) are not counted. As an output, whose last dimension is `bins`, it is counted directly in the result. A named one,
 * `const count = histogram(...)`, may be read at any index and has at most 4096 bins: threads count in shared memory.
 */
export const histogram: ((bins: number, length: number, value: Row) => Row) & Branded<'histogram', 'histogram'> = Object.assign(
  (bins: number, length: number, value: Row): Row => rowOf(countValues(bins, length, value)),
  { heddle: { kind: 'histogram', name: 'histogram' } as const },
)

/** The largest elements of a row and their indices in it. Not all need to be read: `best.values(0)` is the largest. */
export interface Largest {
  readonly values: Row
  readonly indices: Row
}

/**
 * The `k` largest elements of a row, largest first, with their indices in the row; among equals the lowest index comes first. NaN is
 * never among them. If the row has fewer elements than `k`, -Infinity at index -1 fills the rest. `k` is a number from 1 to
 * 4096; above 64 the row is sorted, and then has at most 4096 elements. Or `k` is a dimension of the op: kernels are then compiled for 1, 2,
 * 4, 8, 16, 32 and 64, and calls and programs with another extent are refused. Inside an element, as for each group of a row, it ranks 1 to 8.
 */
export const topK: ((k: number, length: number, value: Row) => Largest) & Branded<'topK', 'topK'> = Object.assign(
  (k: number, length: number, value: Row): Largest => {
    const { values, indices } = rankValues(k, length, value)
    return { values: rowOf(values), indices: rowOf(indices) }
  },
  { heddle: { kind: 'topK', name: 'topK' } as const },
)

/**
 * Indices of a row's elements in ascending order of their keys: `const order = argsort(1024, n, (c) => x(m, c))` may be read at any index, so
 * `x(m, order(c))` is the sorted row. The sort is stable (zeros of either sign are equal), and NaN comes last; for a
 * descending order negate the key. The first argument is the largest row length, 4096 at most: a block sorts a row in its shared
 * memory, and a launch with a longer row is refused.
 */
export const argsort: ((most: number, length: number, key: Row) => Row) & Branded<'argsort', 'argsort'> = Object.assign(
  (most: number, length: number, key: Row): Row => {
    if (length > most) throw new RangeError(`argsort is for rows of at most ${most} elements, this one has ${length}`)
    return rowOf(sortPlaces(length, key))
  },
  { heddle: { kind: 'argsort', name: 'argsort' } as const },
)

/** Marks the default of an integer attribute: `attrs: { window: int(64) }`. Attributes without it are floats. */
export const int: ((value: number) => number) & Branded<'int', 'int'> = Object.assign((value: number): number => value, {
  heddle: { kind: 'int', name: 'int' } as const,
})
