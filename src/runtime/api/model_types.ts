/** Models as users have them, and the types that follow from the declaration they are loaded from. */
import type { DType } from '../../ir/dtype.js'
import type { Conversion } from '../../lang/conversion.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { Tensors } from '../../lang/types.js'
import type { AnyTensor, Kept } from './call_types.js'
import type { Tensor } from './tensor.js'

/** What a declaration carries in its type: inputs with what may be given for them, and names; any name where it carries none. */
export interface Signature {
  readonly inputs: Readonly<Record<string, AnyTensor>>
  readonly weights: string
  readonly attrs: string
  readonly outputs: string
}

/** A tensor of the type that is declared; of any where that is a parameter. */
type Declared<Type extends string> = string extends Type ? AnyTensor : Type extends DType ? AnyTensor<Type> : AnyTensor
export type DeclaredInputs<I extends Tensors> = { readonly [K in keyof I & string]: Declared<I[K]['type']> }

/** What a graph takes that has no lengths of sequences where its plan removes padding. */
interface Lengths {
  readonly lengths?: AnyTensor<'i32'>
}

/** What a declaration carries: names of inputs always, the others where it has a signature. */
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
  /** What it holds before the first run. */
  readonly value: AnyTensor
  /** The output that it holds after a run; what it held before where undefined. */
  readonly next?: O | undefined
}

interface CommonOptions {
  /**
   * A plan, by its name or itself. By default the one with the fewest launches of those that fit device and storage type: `unfused` on the CPU
   * device, and never one that computes with int8. `model.plan` says which it is, `model.planReason` why.
   */
  readonly plan?: string | PlanDecl | undefined
  /** Storage types of type parameters: one for all of them, or one for each by name. By default those of the weights. */
  readonly dtype?: DType | Readonly<Record<string, DType>> | undefined
  /** Sizes of dimensions that neither weights nor inputs have, and of those of states. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /**
   * Inputs and results of sequences without padding, one sequence behind the other, where the plan holds them so; padded by default,
   * whatever the plan.
   */
  readonly packed?: boolean | undefined
  /**
   * Layouts that only a plan names, where it is given by its name. Those of the declaration, of a plan that is given itself, and the shipped ones
   * are found without.
   */
  readonly layouts?: readonly LayoutDecl[] | Readonly<Record<string, LayoutDecl>> | undefined
  /** Steps between layouts, where graphs hold a value in different ones; the shipped ones are there without. */
  readonly conversions?: readonly Conversion[] | undefined
  readonly signal?: AbortSignal | undefined
}

export interface LoadOptions<S extends Signature = Signature, States extends string = string> extends CommonOptions {
  readonly weights: { readonly [K in S['weights']]: AnyTensor }
  readonly attrs?: { readonly [K in S['attrs']]: number } | undefined
  /** Inputs that are kept on the device from run to run. */
  readonly states?: { readonly [K in States]: StateOption<S['outputs']> } | undefined
  /** The largest magnitude of each node and input that the plan stores as int8. */
  readonly scales?: Readonly<Record<string, number>> | undefined
}

export interface ProgramLoadOptions<C = unknown, States extends string = string> extends CommonOptions {
  /** What differs from the configuration that the program declares. */
  readonly config?: Partial<C> | undefined
  /** By the program's names: `layer0.gamma`. */
  readonly weights: Readonly<Record<string, AnyTensor>>
  /** What states hold before the first run; those that are left out hold what is no number, or zeros where they are declared so. */
  readonly states?: { readonly [K in States]?: AnyTensor } | undefined
  /** The largest magnitude of each node and input that the plan stores as int8, by application: `{ layer0: { gelu: 3.5 } }`. */
  readonly scales?: Readonly<Record<string, Readonly<Record<string, number>>>> | undefined
}

export interface ModelRunOptions<Keep extends boolean = boolean> {
  /** Leaves the results on the device. */
  readonly keep?: Keep | undefined
  /** Stops the run between two of its kernels. States may then hold values of any of its steps. */
  readonly signal?: AbortSignal | undefined
}

/** A state of a model. Reading and writing wait their turn among runs. */
export interface ModelState {
  readonly dtype: DType
  readonly shape: readonly number[]
  read(options?: { readonly signal?: AbortSignal | undefined }): Promise<Tensor>
  /** @throws usage `run.*` for a tensor that does not fit */
  write(value: Tensor<DType>): Promise<void>
}

/** What a run takes: every input that is no state. */
type RunInputs<S extends Signature, States extends string> = Pick<S['inputs'], Exclude<keyof S['inputs'], States>>

/**
 * A graph or a program with its weights on a device. Sizes may change from run to run, but for those of states; what was built for a size
 * is kept for the next of the same.
 */
export interface Model<S extends Signature = Signature, States extends string = string> extends Disposable {
  readonly name: string
  readonly plan: string
  /** Why that plan: `asked for`, or what speaks for it on this device. */
  readonly planReason: string
  /** Storage types of its type parameters. */
  readonly types: Readonly<Record<string, DType>>
  readonly states: { readonly [K in States]: ModelState }
  /** @throws usage `run.*` naming what was given and what is allowed, `model.closed`; what kernels and devices throw; the signal's reason */
  run<const Keep extends boolean = false>(
    inputs: RunInputs<S, States>,
    options?: ModelRunOptions<Keep>,
  ): Promise<{ readonly [K in S['outputs']]: Kept<DType, Keep> }>
  /** Runs for one input after the other: `for await (const { y } of model.stream(prompts))`. */
  stream<const Keep extends boolean = false>(
    inputs: Iterable<RunInputs<S, States>> | AsyncIterable<RunInputs<S, States>>,
    options?: ModelRunOptions<Keep>,
  ): AsyncGenerator<{ readonly [K in S['outputs']]: Kept<DType, Keep> }, void>
  /** Frees weights, states and what was built, behind the runs that were asked for. Closing again does nothing. */
  close(): void
}
