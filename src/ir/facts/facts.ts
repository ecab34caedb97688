/**
 * Facts of a kernel: what a test, a measurement or a check must know about its arguments and cannot read off its signature. Stated where
 * an op is declared (src/lang/facts.ts), read off bodies where those tell (domains.ts, accuracy.ts), composed for what plans derive
 * (src/fuse/facts.ts), and written beside each kernel of the manifest. Data throughout, so that a machine without the front end has them.
 */

import { getOwn } from '../get_own.js'
import type { IntrinsicName } from '../intrinsics.js'

/** An integer by the sizes of a run: a number, the name of a dimension or of an integer attribute, or an operation on such. */
export type Count = number | string | readonly [IntegerOperation, ...Count[]]

/** Operations of counts: those of `src/ir/intrinsics.ts` with these names. */
export const integerOperations = ['add', 'sub', 'mul', 'idiv', 'mod', 'minimum', 'maximum'] as const satisfies IntrinsicName[]
type IntegerOperation = (typeof integerOperations)[number]

/** Stands for the longest sequence of packed rows, where no argument of a kernel says it. */
export const longestSequence = '(seq)'

/** What an input of packed rows holds: of each sequence its length or its first row, of each row its sequence or its place there. */
export const packedRoles = ['lengths', 'starts', 'sequences', 'positions'] as const
export type PackedRole = (typeof packedRoles)[number]

/** Which values an input may hold. Without a fact floats are any numbers; integers need one where a body uses them as places or flags. */
export interface Domain {
  /** At least each of these, and at most each of these; of floats the ends of a range, of integers both inclusive. */
  readonly from?: readonly Count[] | undefined
  readonly to?: readonly Count[] | undefined
  /** Taken in turn, as far as the bounds allow them. */
  readonly values?: readonly number[] | undefined
  /** The first of each row of the last axis; `values` are of the others. */
  readonly first?: number | undefined
  /** Allowed besides. */
  readonly also?: readonly number[] | undefined
  /** Along the last axis: never falling from the least to the greatest, or no two alike. */
  readonly order?: 'ascending' | 'distinct' | undefined
  /** How rows are packed, and what of that the input says. */
  readonly packed?: Packed | undefined
  /** Draws are divided by the power of two next to the square root of this: what they multiply is about so large, squared. */
  readonly divide?: Count | undefined
  /** What they multiply: an input of the same op. */
  readonly scales?: string | undefined
}

export interface Packed {
  readonly role: PackedRole
  /** Number of sequences, and of packed rows: at least as many as there are tokens. */
  readonly batch: Count
  readonly rows: Count
  /** Places that positions index. */
  readonly seq?: Count | undefined
}

/** What a dimension is held to: it is `equal` to a count, `atLeast` or `atMost` as large. */
export interface ExtentFact {
  readonly equal?: Count | undefined
  readonly atLeast?: Count | undefined
  readonly atMost?: Count | undefined
  /** A number that divides it. */
  readonly multipleOf?: number | undefined
  /** The longest that a check tries, because its body takes long. */
  readonly upTo?: number | undefined
  /** A check tries every length of this dimension, where the signature alone would tell another. */
  readonly swept?: true | undefined
}

/** An attribute that scales what is stored as int8: chosen so that the results of an output span what that holds. */
export interface AttrFact {
  readonly fills: string
}

export const errorClasses = ['exact', 'elementwise', 'transcendental', 'reduction', 'matmul', 'attention'] as const
export type ErrorClass = (typeof errorClasses)[number]

/**
 * The root mean square of results on random inputs of size 1: `rms` times the root of the length of their sums, as often as `roots` says.
 * `degree` tells how they grow with inputs: as their size to that power.
 */
export interface Size {
  readonly rms: number
  readonly roots: number
  readonly degree: number
}

/** How the results of an output err: the query of the table of tolerances (src/verify/tolerance.ts). */
export interface Accuracy {
  /** On values drawn at random. */
  readonly class: ErrorClass
  /** True if small integers give exactly what the body does. */
  readonly integers: boolean
  /** Of the longest sum. */
  readonly length?: Count | undefined
  /** Magnitude of the terms that cancel; 0 where every result is made of positive terms. 1 by default. */
  readonly scale?: number | undefined
  /** How often that grows with the root of the length: an error of one sum times another sum does once. Never by default. */
  readonly roots?: number | undefined
  /** Of attention whose queries or keys are computed, and rounded on the way: how far a score moves when each of its terms moves by itself. */
  readonly rounded?: Size | undefined
  /** It divides by what may vanish for rows of nearly equal values: only long rows of random values are held to it. */
  readonly steep?: true | undefined
}

export interface Facts {
  readonly inputs: Readonly<Record<string, Domain>>
  readonly dims: Readonly<Record<string, ExtentFact>>
  readonly attrs: Readonly<Record<string, AttrFact>>
  /** How outputs err, as far as stated. What is not follows from the body. */
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

/** The value of a count; undefined where a name has none. */
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

/** The names a count depends on. */
export const namesOf = (count: Count): readonly string[] =>
  typeof count === 'number' ? [] : typeof count === 'string' ? [count] : operandsOf(count).flatMap(namesOf)

const operandsOf = ([, ...operands]: Exclude<Count, number | string>): readonly Count[] => operands

/** A count with its names replaced; undefined where one has no replacement. */
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

/** Both facts of one input. Bounds join; of anything else the first counts. */
export function bothDomains(a: Domain, b: Domain): Domain {
  const join = (x: readonly Count[] = [], y: readonly Count[] = []): readonly Count[] => {
    const seen = new Set(x.map((count) => JSON.stringify(count)))
    return [...x, ...y.filter((count) => !seen.has(JSON.stringify(count)))]
  }
  const [from, to] = [join(a.from, b.from), join(a.to, b.to)]
  return { ...b, ...a, ...(from.length === 0 ? {} : { from }), ...(to.length === 0 ? {} : { to }) }
}
