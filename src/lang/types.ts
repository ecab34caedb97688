/**
 * Types of the authoring API: tensors by dimension names, bodies as functions over numbers. Dimension lists are string
 * literals (`'m n'`), so the TypeScript compiler checks the number of indices of an access.
 */
import type { Row } from '../ir/constructs/team/construct.js'
import type { DType } from '../ir/dtype.js'
import type { Facts } from './facts.js'
import type { LayoutDecl } from './layout.js'

/** `'m n'` as `['m', 'n']`. */
export type SplitDims<S extends string> = S extends ''
  ? []
  : S extends `${infer Head} ${infer Rest}`
    ? [Head, ...SplitDims<Rest>]
    : [S]

/** `'b*s'` as `'b' | 's'`; numbers are not dimensions. */
type Factors<S extends string> = S extends `${infer First}*${infer Rest}`
  ? Factors<First> | Factors<Rest>
  : S extends `${number}`
    ? never
    : S

/** Dimensions of tensors: for `{ x: tensor('T', 'b*s n') }` these are `'b' | 's' | 'n'`. */
export type DimsOf<T extends Tensors> = { readonly [K in keyof T]: Factors<SplitDims<T[K]['dims']>[number]> }[keyof T]

type Numbers<D extends readonly string[]> = { [K in keyof D]: number }

/** Reads one element by its logical indices; a condition for a `bool` tensor. */
export type Access<Dims extends string, Type extends string = string> = (
  ...indices: Numbers<SplitDims<Dims>>
) => Type extends 'bool' ? boolean : number

export type { Row }

/** A row of conditions, for a `bool` output. */
export type Mask = (index: number) => boolean

export interface TensorDecl<Type extends string = string, Dims extends string = string> {
  readonly type: Type
  readonly dims: Dims
  readonly layout: LayoutDecl | undefined
}

/** A tensor that persists between runs of a program. */
export interface StateDecl<Type extends string = string, Dims extends string = string> extends TensorDecl<Type, Dims> {
  /** True if it starts as zeros. */
  readonly cleared: boolean
}

export type States = Readonly<Record<string, StateDecl>>

export type Tensors = Readonly<Record<string, TensorDecl>>

/** Inputs of a body: one accessor per input. */
export type Inputs<I extends Tensors> = { readonly [K in keyof I]: Access<I[K]['dims'], I[K]['type']> }

/** Results of a body: per output a row (for a `bool` output a mask), or a scalar if the row indices already name every dimension. */
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
   * Maps an output to the input that it updates in place, by replacing some elements: `updates: { y: 'cache' }`. The body defines every
   * element, `s === place ? new : cache(..., s, ...)` with a `place` that does not depend on `s`; a place outside the axis replaces nothing.
   */
  readonly updates?: { readonly [K in keyof O & string]?: keyof I & string }
  /** Run-time parameters with their defaults: floats, or integers if the default is written `int(64)`. */
  readonly attrs?: A
  /** Constraints that the signature cannot express: integers that an input may contain, relations between extents (src/lang/facts.ts). */
  readonly facts?: Facts<NoInfer<D>, NoInfer<I>, NoInfer<O>, NoInfer<A>>
  /**
   * `fast`: approximate instructions for exponentials, quotients, roots, logarithms, sines and cosines, in every storage type. `exact`: none. By
   * default those for exponentials, quotients and roots where the storage type of the results hides their error, and never for f32.
   */
  readonly accuracy?: 'fast' | 'exact' | undefined
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
  readonly accuracy?: 'fast' | 'exact' | undefined
  /** The body as a plain function: the oracle. */
  readonly body: Body<string, Tensors, Tensors, Readonly<Record<string, number>>>
}
