/** The types of programs under construction: names, ranks and storage types are checked where they are written. */
import type { DType } from '../ir/dtype.js'
import type { GraphDecl, GraphSignature } from './graph.js'
import type { SplitDims, TensorDecl, Tensors } from './types.js'

/** `i32` of `tensor('i32', ...)`; `param` of a type parameter. */
type Kind<Type extends string> = string extends Type ? string : Type extends DType ? Type : 'param'
/** What may be given for a tensor: a type parameter takes floats. */
type Taken<Type extends string> = string extends Type ? string : Type extends DType ? Type : 'param' | 'f32' | 'f16' | 'bf16'
type Rank<Dims extends string> = string extends Dims ? number : SplitDims<Dims>['length']

/**
 * A value of a program under construction. What it is stored as and its rank are part of its type where they are written down, as those
 * of inputs and states are; of a graph's results they are checked when the program is declared.
 */
export interface ProgramTensor<K extends string = string, R extends number = number> {
  readonly value: number
  readonly kind?: K
  readonly rank?: R
}

/** A result of a graph: its type says nothing. */
export type ProgramResult = ProgramTensor<never, never>

/** The value of an input or a state. */
export type Declared<D extends TensorDecl> = ProgramTensor<Kind<D['type']>, Rank<D['dims']>>
type Given<T extends Tensors> = { readonly [K in keyof T]: ProgramTensor<Taken<T[K]['type']>, Rank<T[K]['dims']>> }

/** Names of weights below a prefix: a graph's weight `gamma` is `prefix.gamma`. */
export interface ProgramWeights {
  readonly prefix: string
  /** Those below a longer prefix. */
  of(name: string): ProgramWeights
}

/** What a graph's weights are: all below a prefix, or each by its name, by which several graphs share one. */
type WeightsFor<S extends GraphSignature> = ProgramWeights | { readonly [K in S['weights'][number]]: string }

export interface ApplyOptions {
  /** What the application is called in messages and profiles; by default the graph's name, in a layer the layer's. */
  readonly label?: string
  /** Dimensions of the graph in the program's, where the inputs do not say them: `{ g: 'h' }`. */
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
  /** Those of this layer: `layer3.gamma`. */
  readonly weights: ProgramWeights
}

type Carried = ProgramTensor | Readonly<Record<string, ProgramTensor>>
/** The same values by the same names, computed anew. */
type Again<C extends Carried> = C extends ProgramTensor ? ProgramResult : { readonly [K in keyof C]: ProgramResult }

/** What a build function calls. */
export interface Programming {
  /** Applies a graph. @throws usage `program.*` naming application, input and value */
  apply<S extends GraphSignature>(
    graph: GraphDecl<string, string, S>,
    inputs: Given<S['inputs']>,
    ...rest: Rest<S>
  ): { readonly [K in S['outputs'][number]]: ProgramResult }
  /** Layers that differ in their weights only, each of the results of the one before. */
  repeat<const C extends Carried>(
    name: string,
    count: number,
    carried: C,
    build: (carried: Again<C>, layer: Layer) => { readonly [K in keyof C]: C[K] } | C | Again<C>,
  ): Again<C>
  /** The same weights again and again, as steps of decoding have: like `repeat` but for that. */
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
  /** A value that outlives runs; `cleared` where more of it is read than was written. It changes by `next`. */
  state<D extends TensorDecl>(name: string, decl: D, options?: { readonly cleared?: boolean }): Declared<D>
  /** What a state holds after a run. */
  next(state: ProgramTensor, value: ProgramTensor): void
  /**
   * Rows of sequences that have as many as `lengths` says: a plan may hold them without padding. Returns a function that joins batch and
   * sequence of a value to such rows: `b s` becomes `b*s`. `tokens` names the dimension that is the number of rows without padding.
   */
  ragged(axis: {
    readonly batch: string
    readonly seq: string
    readonly lengths: ProgramTensor<'i32', 1>
    readonly tokens?: string
  }): (value: ProgramTensor) => ProgramResult
}
