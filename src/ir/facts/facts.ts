/**
 * Facts of a kernel: constraints on its arguments that a test, a measurement or a check needs and that its signature does not contain.
 * Stated where an op is declared (src/lang/facts.ts), inferred from bodies (domains.ts, accuracy.ts), composed for derived kernels
 * (src/fuse/facts.ts), and stored with each kernel of the manifest. They are plain data, so that a machine without the front end has them.
 */

import { getOwn } from '../get_own.js'
import type { IntrinsicName } from '../intrinsics.js'

/** An integer in terms of the sizes of a run: a number, the name of a dimension or of an integer attribute, or an operation on these. */
export type Count = number | string | readonly [IntegerOperation, ...Count[]]

/** Operations of counts, with the names they have in `src/ir/intrinsics.ts`. */
export const integerOperations = ['add', 'sub', 'mul', 'idiv', 'mod', 'minimum', 'maximum'] as const satisfies IntrinsicName[]
type IntegerOperation = (typeof integerOperations)[number]

/** Name for the length of the longest packed sequence, if no argument of a kernel determines it. */
export const longestSequence = '(seq)'

/** Roles of inputs that describe packed rows: per sequence its length or its first row, per row its sequence or its position there. */
export const packedRoles = ['lengths', 'starts', 'sequences', 'positions'] as const
export type PackedRole = (typeof packedRoles)[number]

/** Allowed values of an input. Without a fact floats are any numbers; integers need one if a body uses them as indices or flags. */
export interface Domain {
  /** Lower and upper bounds, all of which hold; for floats the ends of a range, for integers both inclusive. */
  readonly from?: readonly Count[] | undefined
  readonly to?: readonly Count[] | undefined
  /** Values to cycle through, as far as the bounds allow them. */
  readonly values?: readonly number[] | undefined
  /** First element of each row of the last axis; `values` are for the others. */
  readonly first?: number | undefined
  /** Additional allowed values. */
  readonly also?: readonly number[] | undefined
  /** Order along the last axis: never falling from the least to the greatest, or no two equal. */
  readonly order?: 'ascending' | 'distinct' | undefined
  /** Packing of rows, and the role of the input in it. */
  readonly packed?: Packed | undefined
  /** Draws are divided by the power of two next to the square root of this: the expected square of the values that they multiply. */
  readonly divide?: Count | undefined
  /** The input of the same op that they multiply. */
  readonly scales?: string | undefined
}

export interface Packed {
  readonly role: PackedRole
  /** Number of sequences, and of packed rows: at least as many as there are tokens. */
  readonly batch: Count
  readonly rows: Count
  /** Extent that positions index. */
  readonly seq?: Count | undefined
}

/** Constraint on a dimension: it is `equal` to a count, `atLeast` or `atMost` as large. */
export interface ExtentFact {
  readonly equal?: Count | undefined
  readonly atLeast?: Count | undefined
  readonly atMost?: Count | undefined
  /** A number that divides it. */
  readonly multipleOf?: number | undefined
  /** Largest extent that a check tries, because the body is slow. */
  readonly upTo?: number | undefined
  /** True if a check tries every length of this dimension, instead of the dimension that follows from the signature. */
  readonly swept?: true | undefined
}

/** An attribute that scales values stored as int8: chosen so that the results of output `fills` span the range of int8. */
export interface AttrFact {
  readonly fills: string
}

export const errorClasses = ['exact', 'elementwise', 'transcendental', 'reduction', 'matmul', 'attention'] as const
export type ErrorClass = (typeof errorClasses)[number]

/**
 * The root mean square of results on random inputs of size 1: `rms` times the root of the length of their sums to the power `roots`.
 * Results grow as the size of the inputs to the power `degree`.
 */
export interface Size {
  readonly rms: number
  readonly roots: number
  readonly degree: number
}

/** Accuracy of an output: the key into the table of tolerances (src/verify/tolerance.ts). */
export interface Accuracy {
  /** Error class on random values. */
  readonly class: ErrorClass
  /** True if results on small integers are exact. */
  readonly integers: boolean
  /** Length of the longest sum. */
  readonly length?: Count | undefined
  /** Magnitude of the terms that cancel; 0 if all terms of every result are positive. 1 by default. */
  readonly scale?: number | undefined
  /** Exponent of the root of the length by which that grows: 1 for an error of one sum times another sum. 0 by default. */
  readonly roots?: number | undefined
  /** Attention with computed, and thus rounded, queries or keys: change of a score if each of its terms changes independently. */
  readonly rounded?: Size | undefined
  /** True if it divides by a value that may vanish for rows of nearly equal values: it applies only to long rows of random values. */
  readonly steep?: true | undefined
}

export interface Facts {
  readonly inputs: Readonly<Record<string, Domain>>
  readonly dims: Readonly<Record<string, ExtentFact>>
  readonly attrs: Readonly<Record<string, AttrFact>>
  /** Stated error classes of outputs. Others are derived from the body. */
  readonly results: Readonly<Record<string, ErrorClass>>
}

export const noFacts: Facts = { inputs: {}, dims: {}, attrs: {}, results: {} }

/** Dimensions whose extents follow from others. */
export const dependentDims = ({ dims, inputs }: Facts): readonly string[] => [
  ...Object.entries(dims).flatMap(([dim, { equal, atLeast, atMost }]) =>
    (equal ?? atLeast ?? atMost) === undefined ? [] : [dim],
  ),
  ...Object.values(inputs).flatMap(({ packed }) =>
    packed === undefined ? [] : [...namesOf(packed.rows), ...namesOf(packed.seq ?? 0)],
  ),
]

/** Value of a count; undefined if a name has none. */
export function evaluateCount(count: Count, sizes: Readonly<Record<string, number>>): number | undefined {
  if (typeof count === 'number') return count
  if (typeof count === 'string') return getOwn(sizes, count)
  const [operation, ...operands] = count
  const values = operands.flatMap((operand) => evaluateCount(operand, sizes) ?? [])
  const [a, b] = values
  if (a === undefined || b === undefined || values.length !== operands.length) return undefined
  return apply[operation](a, b)
}

const apply: Readonly<Record<IntegerOperation, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  idiv: (a, b) => Math.trunc(a / b),
  mod: (a, b) => a % b,
  minimum: Math.min,
  maximum: Math.max,
}

/** Names that a count depends on. */
export const namesOf = (count: Count): readonly string[] =>
  typeof count === 'number' ? [] : typeof count === 'string' ? [count] : operandsOf(count).flatMap(namesOf)

const operandsOf = ([, ...operands]: Exclude<Count, number | string>): readonly Count[] => operands

/** A count with its names replaced; undefined if one has no replacement. */
export function renameCount(count: Count, rename: (name: string) => Count | undefined): Count | undefined {
  if (typeof count === 'number') return count
  if (typeof count === 'string') return rename(count)
  const [operation, ...operands] = count
  const renamed = operands.flatMap((operand) => {
    const count = renameCount(operand, rename)
    return count === undefined ? [] : [count]
  })
  return renamed.length === operands.length ? [operation, ...renamed] : undefined
}

/** Merges two facts of one input. Bounds of both apply; for other fields `a` takes precedence. */
export function bothDomains(a: Domain, b: Domain): Domain {
  const join = (x: readonly Count[] = [], y: readonly Count[] = []): readonly Count[] => {
    const seen = new Set(x.map((count) => JSON.stringify(count)))
    return [...x, ...y.filter((count) => !seen.has(JSON.stringify(count)))]
  }
  const [from, to] = [join(a.from, b.from), join(a.to, b.to)]
  return { ...b, ...a, ...(from.length === 0 ? {} : { from }), ...(to.length === 0 ? {} : { to }) }
}
