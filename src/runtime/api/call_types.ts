/**
 * Types of a call, derived from the declaration of the op: names of inputs and results, and their possible storage types. A wrong name does
 * not compile. Properties unknown to TypeScript (extents, types of values it has widened) are checked at run time.
 */
import type { DType } from '../../ir/dtype.js'
import type { Op, SplitDims, Tensors, TypeChoices } from '../../lang/types.js'
import type { DeviceTensor } from './device_tensor.js'
import type { Tensor } from './tensor.js'

/** Any op. */
export type AnyOp = Op<Tensors, Tensors, Readonly<Record<string, number>>, TypeChoices>

/** Storage types of a reference in a declaration: itself, or the choices of its type parameter. */
type Choice<T extends TypeChoices, Ref extends string> = Ref extends DType ? Ref : Ref extends keyof T ? T[Ref][number] : DType

/** Tensor argument of a call: a host tensor or a device tensor. */
export type AnyTensor<D extends DType = DType> = Tensor<D> | DeviceTensor<D>

/** Inputs of an op, each in a storage type that the op allows. */
export type CallInputs<O extends AnyOp> = {
  readonly [K in keyof O['inputs'] & string]: AnyTensor<Choice<O['types'], O['inputs'][K]['type']>>
}

/** Rejects keys of `G` that `Known` does not have. */
export type NoOthers<G, Known> = { readonly [K in Exclude<keyof G, keyof Known>]: never }

/** Storage types for an op's type parameters: one for all of them, or one per name. */
export type CallDType<T extends TypeChoices> = Choice<T, keyof T & string> | { readonly [P in keyof T & string]?: T[P][number] }

/** Dimensions named in declarations of tensors. */
type DimNames<T extends Tensors> = { readonly [K in keyof T]: SplitDims<T[K]['dims']>[number] }[keyof T]

/** Partial record of these keys; an empty record if there are none. */
type Some<K extends string> = [K] extends [never] ? Readonly<Record<string, never>> : { readonly [N in K]?: number | undefined }

export interface CallOptions<O extends AnyOp, P = CallDType<O['types']>, Keep extends boolean = boolean> {
  /** Values of attributes; the others have the op's defaults. */
  readonly attrs?: Some<keyof O['attrs'] & string>
  /** Storage types of type parameters that no input fixes. Those of inputs must agree with it. */
  readonly dtype?: P | undefined
  /** Extents of dimensions that no input has. Those of inputs must agree with it. */
  readonly dims?: Some<DimNames<O['inputs']> | DimNames<O['outputs']>>
  /** Keeps the results on the device. */
  readonly keep?: Keep | undefined
  /** Stops the call before its kernel is launched, or between its launches. */
  readonly signal?: AbortSignal | undefined
}

/** Storage types that the inputs `G` fix for a type parameter. */
type Given<O extends AnyOp, G, Param extends string> = {
  [K in keyof O['inputs'] & keyof G]: O['inputs'][K]['type'] extends Param
    ? G[K] extends { readonly dtype: infer D extends DType }
      ? D
      : never
    : never
}[keyof O['inputs'] & keyof G]

/** Storage types that the option fixes for a type parameter. */
type Chosen<P, Param extends string> = P extends DType
  ? P
  : P extends { readonly [K in Param]: infer D extends DType }
    ? D
    : never

/** Storage type of a result: that of its type parameter, as far as inputs and options fix it. */
type ResultType<O extends AnyOp, G, P, Ref extends string> = Ref extends DType
  ? Ref
  : [Given<O, G, Ref>] extends [never]
    ? [Chosen<P, Ref>] extends [never]
      ? Choice<O['types'], Ref>
      : Chosen<P, Ref>
    : Given<O, G, Ref>

/** Results of a call: host tensors, or device tensors with `keep`. */
export type CallResult<O extends AnyOp, G, P, Keep extends boolean> = {
  readonly [K in keyof O['outputs'] & string]: ResultOn<ResultType<O, G, P, O['outputs'][K]['type']>, Keep>
}

export type ResultOn<D extends DType, Keep extends boolean> = Keep extends true
  ? DeviceTensor<D>
  : DType extends D
    ? Tensor
    : Tensor<D>
