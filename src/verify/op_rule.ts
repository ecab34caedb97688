/** How a kernel is tried and judged: its facts (src/ir/facts) as functions of the sizes of a run. */
import type { Size } from '../ir/facts/facts.js'
import type { Extents } from './ragged.js'
import type { Random } from './random.js'
import type { OpClass } from './tolerance.js'

type KernelClass = Exclude<OpClass, 'model'>

/** How one output is judged. */
export interface ResultRule {
  /** On values drawn at random. */
  readonly class: KernelClass
  /** True if results equal the body's on small integers. */
  readonly integers: boolean
  /** Length of the longest sum. */
  readonly length: (dims: Extents) => number
  /** Magnitude of the terms that cancel; 0 where every result is made of positive terms. */
  readonly scale: number
  /** How often that grows with the root of the length. */
  readonly roots: number
  /** How far a score of attention moves when each of its terms moves by itself, where queries or keys are rounded on the way. */
  readonly rounded: Size | undefined
}

export interface OpRule {
  /** By output. */
  readonly results: Readonly<Record<string, ResultRule>>
  /** Fewest elements of a statistic that are drawn from a normal distribution. Fewer may be equal, where statistics are ill-conditioned. */
  readonly normalFrom: number
  /** How many elements a statistic is of, where a sweep runs along `row`: what is reduced, if not the row. */
  readonly combined: (dims: Extents, row: string) => number
  /** Dimensions whose extents follow from the others, or need not vary. */
  readonly derived: readonly string[]
  /** All extents, given those of the other dimensions. */
  readonly extents: (given: Extents) => Extents
  /** The elements of inputs that are no arbitrary numbers. */
  readonly inputs: Readonly<Record<string, (draw: DrawRequest) => ArrayLike<number>>>
  /** Attributes that follow from the extents. */
  readonly attrs: (dims: Extents) => Readonly<Record<string, number>>
  /** Attributes that are chosen by what they scale: the output. */
  readonly fills: Readonly<Record<string, string>>
  /** Longest extents worth trying. */
  readonly upTo: Readonly<Record<string, number>>
  /** The dimensions that take every length; undefined where the signature tells. */
  readonly swept: readonly string[] | undefined
  /** Instances of an op that has many share the cases: each takes one in this many, another instance others. */
  readonly shared: number
}

export interface DrawRequest {
  readonly next: Random
  /** One number of the distribution that is drawn from. */
  readonly value: (next: Random) => number
  readonly dims: Extents
  readonly shape: readonly number[]
}
