/**
 * The types an author meets: tensors by dimension names, bodies as functions over numbers. Dimension lists are string
 * literals (`'m n'`), so the number of indices an access takes is checked by the TypeScript compiler.
 */
import type { DType } from '../ir/dtype.js'
import type { Facts } from './facts.js'
import type { LayoutDecl } from './layout.js'

/** `'m n'` as `['m', 'n']`. */
export type SplitDims<S extends string> = S extends ''
  ? []
  : S extends `${infer Head} ${infer Rest}`
    ? [Head, ...SplitDims<Rest>]
    : [S]

/** `'b*s'` as `'b' | 's'`; numbers are no dimensions. */
type Factors<S extends string> = S extends `${infer First}*${infer Rest}`
  ? Factors<First> | Factors<Rest>
  : S extends `${number}`
    ? never
    : S

/** The dimensions that tensors have: of `{ x: tensor('T', 'b*s n') }` these are `'b' | 's' | 'n'`. */
export type DimsOf<T extends Tensors> = { readonly [K in keyof T]: Factors<SplitDims<T[K]['dims']>[number]> }[keyof T]

type Numbers<D extends readonly string[]> = { [K in keyof D]: number }

/** Reads one element by its logical indices: of a `bool` tensor a condition. */
export type Access<Dims extends string, Type extends string = string> = (
  ...indices: Numbers<SplitDims<Dims>>
) => Type extends 'bool' ? boolean : number

/** A row value: element `c` of the row. */
export type Row = (index: number) => number

/** A row of conditions, which a `bool` output holds. */
export type Mask = (index: number) => boolean

export interface TensorDecl<Type extends string = string, Dims extends string = string> {
  readonly type: Type
  readonly dims: Dims
  readonly layout: LayoutDecl | undefined
}

/** A tensor that outlives the runs of a program. */
export interface StateDecl<Type extends string = string, Dims extends string = string> extends TensorDecl<Type, Dims> {
  /** Starts as zeros. */
  readonly cleared: boolean
}

export type States = Readonly<Record<string, StateDecl>>

export type Tensors = Readonly<Record<string, TensorDecl>>

/** What a body receives: an accessor for each input. */
export type Inputs<I extends Tensors> = { readonly [K in keyof I]: Access<I[K]['dims'], I[K]['type']> }

/** What a body returns: for each output a row (of a `bool` output a mask), or a scalar when the row indices already name every dimension. */
export type Outputs<O extends Tensors> = {
  readonly [K in keyof O]: O[K]['type'] extends 'bool' ? Mask | boolean : Row | number
}

/** Extents of the dimensions and values of the attributes, by name. */
export type Environment<D extends string, A> = { readonly [K in D | (keyof A & string)]: number }

export type Body<D extends string, I extends Tensors, O extends Tensors, A> = (
  inputs: Inputs<I>,
  environment: Environment<D, A>,
) => (...rows: number[]) => Outputs<O>

/** Type parameters of an op, with the storage types each may take. */
export type TypeChoices = Readonly<Record<string, readonly DType[]>>

export interface OpConfig<
  D extends string,
  T extends TypeChoices,
  I extends Tensors,
  O extends Tensors,
  A extends Readonly<Record<string, number>>,
> {
  /** Names of the dimensions; their extents are run-time values. */
  readonly dims: readonly D[]
  /** Type parameters with the storage types each may take. */
  readonly types?: T
  readonly inputs: I
  readonly outputs: O
  /**
   * Output to the input it is with some elements replaced, in the same memory: `updates: { y: 'cache' }`. The body defines every
   * element, `s === place ? new : cache(..., s, ...)` with a place that does not depend on `s`; outside of the axis nothing is replaced.
   */
  readonly updates?: { readonly [K in keyof O & string]?: keyof I & string }
  /** Run-time parameters with their defaults: floats, or integers where the default is written `int(64)`. */
  readonly attrs?: A
  /** What the signature cannot say about arguments: which integers an input may hold, how extents depend on each other (src/lang/facts.ts). */
  readonly facts?: Facts<NoInfer<D>, NoInfer<I>, NoInfer<O>, NoInfer<A>>
  readonly body: Body<D, I, O, A>
}

export interface Op<
  I extends Tensors = Tensors,
  O extends Tensors = Tensors,
  A extends Readonly<Record<string, number>> = Readonly<Record<string, number>>,
  T extends TypeChoices = TypeChoices,
> {
  readonly name: string
  readonly dims: readonly string[]
  readonly types: T
  readonly inputs: I
  readonly outputs: O
  readonly updates: Readonly<Record<string, string>>
  readonly attrs: A
  /** The body as a plain function: the oracle. */
  readonly body: Body<string, Tensors, Tensors, Readonly<Record<string, number>>>
}
