/** Rules for testing a kernel and judging its results: its facts (src/ir/facts) as functions of the sizes of a run. */
import type { Size } from '../ir/facts/facts.js'
import type { Extents } from './ragged.js'
import type { Random } from './random.js'
import type { OpClass } from './tolerance.js'

type KernelClass = Exclude<OpClass, 'model'>

/** Rule for judging one output. */
export interface ResultRule {
  /** Error class on values drawn at random. */
  readonly class: KernelClass
  /** True if results on small integers equal those of the body. */
  readonly integers: boolean
  /** Length of the longest sum. */
  readonly length: (dims: Extents) => number
  /** Magnitude of the terms that cancel; 0 if every result is made of positive terms. */
  readonly scale: number
  /** Number of times that this magnitude grows with the root of the length. */
  readonly roots: number
  /** Change of an attention score when each of its terms changes independently, if queries or keys are rounded in between. */
  readonly rounded: Size | undefined
}

export interface OpRule {
  /** Rules by output. */
  readonly results: Readonly<Record<string, ResultRule>>
  /** Fewest elements of a statistic that are drawn from a normal distribution. Fewer may be equal, which makes statistics ill-conditioned. */
  readonly normalFrom: number
  /** Number of elements per statistic in a sweep along `row`: the extent of the reduced dimensions, if not of the row. */
  readonly combined: (dims: Extents, row: string) => number
  /** Dimensions whose extents follow from the others, or need not vary. */
  readonly derived: readonly string[]
  /** Returns all extents, given those of the free dimensions. */
  readonly extents: (given: Extents) => Extents
  /** Draws of the inputs whose elements are not arbitrary numbers. */
  readonly inputs: Readonly<Record<string, (draw: DrawRequest) => ArrayLike<number>>>
  /** Attributes that follow from the extents. */
  readonly attrs: (dims: Extents) => Readonly<Record<string, number>>
  /** Attributes that are chosen by the output that they scale. */
  readonly fills: Readonly<Record<string, string>>
  /** Largest extents worth trying. */
  readonly upTo: Readonly<Record<string, number>>
  /** The dimensions that take every length; undefined if they follow from the signature. */
  readonly swept: readonly string[] | undefined
  /** Number of instances that share the cases, for an op with many instances: each takes one case in this many. */
  readonly shared: number
}

export interface DrawRequest {
  readonly next: Random
  /** Draws one number of the case's distribution. */
  readonly value: (next: Random) => number
  readonly dims: Extents
  readonly shape: readonly number[]
}
