/** Types of programs under construction, by which TypeScript checks names, ranks and storage types. */
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl, GraphSignature } from '../graph.js'
import type { SplitDims, TensorDecl, Tensors } from '../types.js'

/** `i32` of `tensor('i32', ...)`; `param` of a type parameter. */
type Kind<Type extends string> = string extends Type ? string : Type extends DType ? Type : 'param'
/** Types accepted for a tensor: a type parameter accepts floats. */
type Taken<Type extends string> = string extends Type ? string : Type extends DType ? Type : 'param' | 'f32' | 'f16' | 'bf16'
type Rank<Dims extends string> = string extends Dims ? number : SplitDims<Dims>['length']

/**
 * A value of a program under construction. Its storage type and rank are part of its type where they are written down, as those
 * of inputs and states are; for results of a graph they are checked when the program is declared.
 */
export interface ProgramTensor<K extends string = string, R extends number = number> {
  readonly value: number
  readonly kind?: K
  readonly rank?: R
}

/** A result of a graph, without storage type and rank in its type. */
export type ProgramResult = ProgramTensor<never, never>

/** The value of an input or a state. */
export type Declared<D extends TensorDecl> = ProgramTensor<Kind<D['type']>, Rank<D['dims']>>
type Given<T extends Tensors> = { readonly [K in keyof T]: ProgramTensor<Taken<T[K]['type']>, Rank<T[K]['dims']>> }

/** Names of weights below a prefix: a graph's weight `gamma` is `prefix.gamma`. */
export interface ProgramWeights {
  readonly prefix: string
  /** Weights below a longer prefix. */
  of(name: string): ProgramWeights
}

/** Weights for a graph: all below a prefix, or each by its name, by which several graphs can share one. */
type WeightsFor<S extends GraphSignature> = ProgramWeights | { readonly [K in S['weights'][number]]: string }

export interface ApplyOptions {
  /** Name of the application in messages and profiles; by default the graph's name, in a layer the layer's. */
  readonly label?: string
  /** Dimensions of the graph in terms of the program's, where the inputs do not determine them: `{ g: 'h' }`. */
  readonly dims?: Readonly<Record<string, string>>
}

type Attrs<S extends GraphSignature> = { readonly [K in S['attrs'][number]]: number }

type Rest<S extends GraphSignature> = [S['attrs'][number]] extends [never]
  ? [S['weights'][number]] extends [never]
    ? [weights?: WeightsFor<S>, attrs?: Attrs<S>, options?: ApplyOptions]
    : [weights: WeightsFor<S>, attrs?: Attrs<S>, options?: ApplyOptions]
  : [weights: WeightsFor<S>, attrs: Attrs<S>, options?: ApplyOptions]

/** One of several layers. */
export interface Layer {
  readonly index: number
  /** Weights of this layer: `layer3.gamma`. */
  readonly weights: ProgramWeights
}

type Carried = ProgramTensor | Readonly<Record<string, ProgramTensor>>
/** Recomputed values of the same names. */
type Again<C extends Carried> = C extends ProgramTensor ? ProgramResult : { readonly [K in keyof C]: ProgramResult }

/** Builder that a program's build function receives. */
export interface Programming {
  /** Applies a graph. @throws usage `program.*` naming application, input and value */
  apply<S extends GraphSignature>(
    graph: GraphDecl<string, string, S>,
    inputs: Given<S['inputs']>,
    ...rest: Rest<S>
  ): { readonly [K in S['outputs'][number]]: ProgramResult }
  /** Repeats layers that differ only in their weights, each applied to the results of the previous one. */
  repeat<const C extends Carried>(
    name: string,
    count: number,
    carried: C,
    build: (carried: Again<C>, layer: Layer) => { readonly [K in keyof C]: C[K] } | C | Again<C>,
  ): Again<C>
  /** Same as `repeat`, but with the same weights in every step, as in decoding. */
  steps<const C extends Carried>(
    name: string,
    count: number,
    carried: C,
    build: (carried: Again<C>, index: number) => { readonly [K in keyof C]: C[K] } | C | Again<C>,
  ): Again<C>
  /** The same elements under another shape. */
  view(value: ProgramTensor, dims: string): ProgramResult
  /** Weights by their names below a prefix. */
  weights(prefix: string): ProgramWeights
  /** Declares a value that persists between runs; `cleared` if elements are read before they are written. `next` changes it. */
  state<D extends TensorDecl>(name: string, decl: D, options?: { readonly cleared?: boolean }): Declared<D>
  /** Sets the value of a state after a run. */
  next(state: ProgramTensor, value: ProgramTensor): void
  /**
   * Declares sequences of different `lengths`, whose rows a plan may store without padding. Returns a function that merges batch and
   * sequence of a value into such rows: `b s` becomes `b*s`. `tokens` names the dimension for the number of rows without padding.
   */
  ragged(axis: {
    readonly batch: string
    readonly seq: string
    readonly lengths: ProgramTensor<'i32', 1>
    readonly tokens?: string
  }): (value: ProgramTensor) => ProgramResult
}
