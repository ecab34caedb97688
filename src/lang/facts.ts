/**
 * Facts that an author states on an op: constraints on its arguments that its signature cannot express. `heddle check`, `heddle selftest`
 * and `heddle tune` generate their data by them, and plans pass them on to derived kernels. They do not change the compiled code.
 *
 *     facts: {
 *       ids: { index: 'v' },                        // every id is a row of a table of v rows
 *       lengths: { from: 1, to: 't' },               // integers from 1 to the extent of t; of floats, a range
 *       labels: { index: 'v', also: [-100] },
 *       offsets: { from: 0, to: 'n', order: 'ascending' },
 *       order: { index: 'm', order: 'distinct' },    // a permutation
 *       penalty: { values: [1, 2, 0.5] },
 *       starts: { packed: 'starts', batch: 'b', rows: 't' },
 *       p: { atLeast: 's' }, n: 'w*p*k',             // dimensions
 *       d: { multipleOf: 4 },
 *       inverse: { fills: 'y' },                     // an attribute that scales the int8 values of y
 *       scores: 'exact',                             // the error class of an output, if it does not follow from the body
 *     }
 *
 * Constraints that follow from the body need no fact: an integer that indexes a tensor directly is within its extent, and the error class
 * of results follows from the operations that compute them.
 */
import type { ErrorClass, PackedRole } from '../ir/facts/facts.js'

/** A number, a dimension (or integer attribute), a product such as `2*w`, or a sum of these. */
export type Size<N extends string> = number | N | `${string}*${string}` | `${string}+${string}`

export type InputFact<N extends string, I extends string> =
  | {
      /** Integers from 0 to one below that extent. */
      readonly index: Size<N>
      readonly values?: readonly number[]
      readonly also?: readonly number[]
      readonly order?: 'ascending' | 'distinct'
    }
  | {
      readonly from?: Size<N>
      readonly to?: Size<N>
      /** Values to cycle through; without a range, the only ones. */
      readonly values?: readonly number[]
      /** First element of each row of the last axis; `values` are for the others. */
      readonly first?: number
      readonly also?: readonly number[]
      /** Order along the last axis: never falling, the ends of the range included, or no two equal. */
      readonly order?: 'ascending' | 'distinct'
    }
  /** Role of the input in describing packed rows: see heddle/std's `unpackRows`. */
  | { readonly packed: PackedRole; readonly batch: Size<N>; readonly rows: Size<N>; readonly seq?: Size<N> }
  /** Floats that scale the named input to about 1 when the two are multiplied: the scales of quantised values. */
  | { readonly scales: I }

/**
 * Constraint on a dimension, which calls must satisfy: a number or product, or bounds, or a multiple of a number. `upTo` is the largest
 * extent worth checking; `swept` checks every extent.
 */
export type DimFact<N extends string> =
  | Size<N>
  | {
      readonly atLeast?: Size<N>
      readonly atMost?: Size<N>
      readonly multipleOf?: number
      readonly upTo?: number
      readonly swept?: true
    }

/** Facts by the name of the input, dimension, attribute or output that they describe. */
export type Facts<D extends string, I, O, A> = {
  readonly [K in keyof I]?: InputFact<D | (keyof A & string), keyof I & string>
} & {
  readonly [K in D]?: DimFact<D | (keyof A & string)>
} & { readonly [K in keyof A]?: { readonly fills: keyof O & string } } & {
  readonly [K in keyof O]?: Exclude<ErrorClass, 'attention'>
}
