/**
 * Facts an author states on an op: what its signature cannot say about its arguments. `heddle check`, `heddle selftest` and `heddle tune`
 * draw their data by them, and plans carry them to the kernels they derive. They change nothing of what is compiled.
 *
 *     facts: {
 *       ids: { index: 'v' },                        // every id is a row of a table of v rows
 *       lengths: { from: 1, to: 't' },               // integers from 1 to the extent of t; of floats, a range
 *       labels: { index: 'v', also: [-100] },
 *       offsets: { from: 0, to: 'n', order: 'ascending' },
 *       order: { index: 'm', order: 'distinct' },    // a permutation
 *       penalty: { values: [1, 2, 0.5] },
 *       starts: { packed: 'starts', batch: 'b', rows: 't' },
 *       p: { atLeast: 's' }, n: 'w*p*k',             // of dimensions
 *       d: { multipleOf: 4 },
 *       inverse: { fills: 'y' },                     // an attribute that scales what y stores as int8
 *       scores: 'exact',                             // how an output errs, where the body does not tell
 *     }
 *
 * What a body tells by itself needs no fact: an integer that indexes a tensor directly lies in it, and how results err follows from the
 * operations that make them.
 */
import type { ErrorClass, PackedRole } from '../ir/facts/facts.js'

/** A number, a dimension (or integer attribute), a product such as `2*w`, or a sum of such. */
export type Size<N extends string> = number | N | `${string}*${string}` | `${string}+${string}`

export type InputFact<N extends string, I extends string> =
  | {
      /** From 0 to one below that extent. */
      readonly index: Size<N>
      readonly values?: readonly number[]
      readonly also?: readonly number[]
      readonly order?: 'ascending' | 'distinct'
    }
  | {
      readonly from?: Size<N>
      readonly to?: Size<N>
      /** Taken in turn; without a range, nothing else. */
      readonly values?: readonly number[]
      /** Of each row of the last axis the first element; `values` are of the others. */
      readonly first?: number
      readonly also?: readonly number[]
      /** Along the last axis: never falling, the ends of the range included, or no two alike. */
      readonly order?: 'ascending' | 'distinct'
    }
  /** What the input says of rows that lie one behind the other: see heddle/std's `unpackRows`. */
  | { readonly packed: PackedRole; readonly batch: Size<N>; readonly rows: Size<N>; readonly seq?: Size<N> }
  /** Floats that bring the named input to about 1 where the two are multiplied: the steps of what is quantised. */
  | { readonly scales: I }

/** What a dimension is: a number or product, or bounds, or a multiple of a number, which calls are held to. `upTo` is the longest that is worth checking; `swept` takes every length. */
export type DimFact<N extends string> =
  | Size<N>
  | {
      readonly atLeast?: Size<N>
      readonly atMost?: Size<N>
      readonly multipleOf?: number
      readonly upTo?: number
      readonly swept?: true
    }

/** Facts by the names of what they are of: inputs, dimensions, attributes, outputs. */
export type Facts<D extends string, I, O, A> = {
  readonly [K in keyof I]?: InputFact<D | (keyof A & string), keyof I & string>
} & {
  readonly [K in D]?: DimFact<D | (keyof A & string)>
} & { readonly [K in keyof A]?: { readonly fills: keyof O & string } } & {
  readonly [K in keyof O]?: Exclude<ErrorClass, 'attention'>
}
