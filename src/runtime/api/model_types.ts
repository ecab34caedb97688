/** Public types of models, derived from their declarations. */
import type { DType } from '../../ir/dtype.js'
import type { Conversion } from '../../lang/conversion.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { Tensors } from '../../lang/types.js'
import type { AnyTensor, ResultOn } from './call_types.js'
import type { Tensor } from './tensor.js'

/** Signature in the type of a declaration: inputs with their tensor types, and names; any name if it has none. */
export interface Signature {
  readonly inputs: Readonly<Record<string, AnyTensor>>
  readonly weights: string
  readonly attrs: string
  readonly outputs: string
}

/** A tensor of the declared storage type; of any type if that is a parameter. */
type Declared<Type extends string> = string extends Type ? AnyTensor : Type extends DType ? AnyTensor<Type> : AnyTensor
export type DeclaredInputs<I extends Tensors> = { readonly [K in keyof I & string]: Declared<I[K]['type']> }

/** Additional input of a graph without sequence lengths whose plan removes padding. */
interface Lengths {
  readonly lengths?: AnyTensor<'i32'>
}

/** Signature of a declaration: it always has the names of inputs, the others only if it declares a signature. */
export type SignatureOf<D> = D extends {
  readonly signature: {
    readonly inputs: infer I extends Tensors
    readonly weights: readonly (infer W extends string)[]
    readonly attrs: readonly (infer A extends string)[]
    readonly outputs: readonly (infer O extends string)[]
  }
}
  ? { inputs: DeclaredInputs<I> & Lengths; weights: W; attrs: A; outputs: O }
  : D extends GraphDecl<string, infer I>
    ? { inputs: Readonly<Record<I, AnyTensor>> & Lengths; weights: string; attrs: string; outputs: string }
    : Signature

/** An input that outlives runs. */
export interface StateOption<O extends string = string> {
  /** Initial value. */
  readonly value: AnyTensor
  /** Output whose value it holds after a run; unchanged if undefined. */
  readonly next?: O | undefined
}

interface CommonOptions {
  /**
   * A plan, by name or declaration. By default the plan with the fewest launches that suits device and storage type: `unfused` on the CPU
   * device, and never one that computes in int8. `model.plan` names it, `model.planReason` gives the reason.
   */
  readonly plan?: string | PlanDecl | undefined
  /** Storage types of type parameters: one for all of them, or one per name. By default those of the weights. */
  readonly dtype?: DType | Readonly<Record<string, DType>> | undefined
  /** Sizes of dimensions that neither weights nor inputs fix, and of the dimensions of states. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /**
   * Packed sequences: inputs and results are concatenated without padding, if the plan stores them so. By default they are padded, regardless of the
   * plan.
   */
  readonly packed?: boolean | undefined
  /**
   * Layouts that only a plan names, if the plan is given by name. Those of the declaration, of a plan given as a declaration, and the shipped
   * ones need not be listed.
   */
  readonly layouts?: readonly LayoutDecl[] | Readonly<Record<string, LayoutDecl>> | undefined
  /** Conversions between layouts, if graphs store a value in different ones; the shipped conversions need not be listed. */
  readonly conversions?: readonly Conversion[] | undefined
  readonly signal?: AbortSignal | undefined
}

export interface LoadOptions<S extends Signature = Signature, States extends string = string> extends CommonOptions {
  readonly weights: { readonly [K in S['weights']]: AnyTensor }
  readonly attrs?: { readonly [K in S['attrs']]: number } | undefined
  /** Inputs that stay on the device between runs. */
  readonly states?: { readonly [K in States]: StateOption<S['outputs']> } | undefined
  /** The largest magnitude of each node and input that the plan stores as int8. */
  readonly scales?: Readonly<Record<string, number>> | undefined
}

export interface ProgramLoadOptions<C = unknown, States extends string = string> extends CommonOptions {
  /** Values that override the configuration of the program. */
  readonly config?: Partial<C> | undefined
  /** Weights by the program's names: `layer0.gamma`. */
  readonly weights: Readonly<Record<string, AnyTensor>>
  /** Initial values of states. Omitted ones are poison (NaN, or -1 in integers), or zeros if declared as cleared. */
  readonly states?: { readonly [K in States]?: AnyTensor } | undefined
  /** The largest magnitude of each node and input that the plan stores as int8, by application: `{ layer0: { gelu: 3.5 } }`. */
  readonly scales?: Readonly<Record<string, Readonly<Record<string, number>>>> | undefined
}

export interface ModelRunOptions<Keep extends boolean = boolean> {
  /** Keeps the results on the device. */
  readonly keep?: Keep | undefined
  /** Stops the run between two of its kernels. States may then hold values of any of its steps. */
  readonly signal?: AbortSignal | undefined
}

/** A state of a model. Reads and writes are ordered with runs. */
export interface ModelState {
  readonly dtype: DType
  readonly shape: readonly number[]
  read(options?: { readonly signal?: AbortSignal | undefined }): Promise<Tensor>
  /** @throws usage `run.*` for a tensor that does not fit */
  write(value: Tensor<DType>): Promise<void>
}

/** Inputs of a run: every input that is not a state. */
type RunInputs<S extends Signature, States extends string> = Pick<S['inputs'], Exclude<keyof S['inputs'], States>>

/**
 * A graph or a program with its weights on a device. Sizes may change between runs, except for those of states. Programs built for a size are
 * cached for later runs of the same size.
 */
export interface Model<S extends Signature = Signature, States extends string = string> extends Disposable {
  readonly name: string
  readonly plan: string
  /** Reason for the plan: `asked for`, or its advantage on this device. */
  readonly planReason: string
  /** Storage types of its type parameters. */
  readonly types: Readonly<Record<string, DType>>
  readonly states: { readonly [K in States]: ModelState }
  /**
   * Runs the model once.
   * @throws usage `run.*` naming the expected and the given value, `model.closed`; errors of kernels and devices; the signal's reason
   */
  run<const Keep extends boolean = false>(
    inputs: RunInputs<S, States>,
    options?: ModelRunOptions<Keep>,
  ): Promise<{ readonly [K in S['outputs']]: ResultOn<DType, Keep> }>
  /** Runs the model for one input after the other: `for await (const { y } of model.stream(prompts))`. */
  stream<const Keep extends boolean = false>(
    inputs: Iterable<RunInputs<S, States>> | AsyncIterable<RunInputs<S, States>>,
    options?: ModelRunOptions<Keep>,
  ): AsyncGenerator<{ readonly [K in S['outputs']]: ResultOn<DType, Keep> }, void>
  /** Frees weights, states and programs after the runs requested so far. Closing again does nothing. */
  close(): void
}
