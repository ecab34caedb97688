/** Models as users have them, and the types that follow from the declaration they are loaded from. */
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { AnyTensor, Kept } from './call_types.js'
import type { Tensor } from './tensor.js'

/** The names that a graph's declaration carries in its type; any name where it carries none. */
interface Signature {
  readonly inputs: string
  readonly weights: string
  readonly attrs: string
  readonly outputs: string
}

/** What a declaration carries: names of inputs always, the others where it has a signature. */
export type SignatureOf<D> = D extends {
  readonly signature: {
    readonly inputs: infer I
    readonly weights: readonly (infer W extends string)[]
    readonly attrs: readonly (infer A extends string)[]
    readonly outputs: readonly (infer O extends string)[]
  }
}
  ? { inputs: keyof I & string; weights: W; attrs: A; outputs: O }
  : D extends GraphDecl<string, infer I>
    ? { inputs: I; weights: string; attrs: string; outputs: string }
    : Signature

/** An input that outlives runs. */
export interface StateOption<O extends string = string> {
  /** What it holds before the first run. */
  readonly value: AnyTensor
  /** The output that it holds after a run; what it held before where undefined. */
  readonly next?: O | undefined
}

export interface LoadOptions<S extends Signature = Signature, States extends string = string> {
  /** A plan of the graph, by its name or itself; `unfused` by default. */
  readonly plan?: string | PlanDecl | undefined
  /** Storage types of the graph's type parameters: one for all of them, or one for each by name. By default those of the weights. */
  readonly dtype?: DType | Readonly<Record<string, DType>> | undefined
  readonly weights: { readonly [K in S['weights']]: AnyTensor }
  readonly attrs?: { readonly [K in S['attrs']]: number } | undefined
  /** Inputs that are kept on the device from run to run. */
  readonly states?: { readonly [K in States]: StateOption<S['outputs']> } | undefined
  /** Sizes of dimensions that neither weights nor inputs have. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** The layouts that the graph or its plan names. */
  readonly layouts?: readonly LayoutDecl[] | undefined
  readonly signal?: AbortSignal | undefined
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
  write(value: Tensor): Promise<void>
}

/** A graph with its weights on a device. Sizes may change from run to run; what was built for a size is kept for the next of the same. */
export interface Model<S extends Signature = Signature, States extends string = string> extends Disposable {
  readonly name: string
  readonly plan: string
  /** Storage types of its type parameters. */
  readonly types: Readonly<Record<string, DType>>
  readonly states: { readonly [K in States]: ModelState }
  /** @throws usage `run.*` naming what was given and what is allowed, `model.closed`; what kernels and devices throw; the signal's reason */
  run<const Keep extends boolean = false>(
    inputs: { readonly [K in Exclude<S['inputs'], States>]: AnyTensor },
    options?: ModelRunOptions<Keep>,
  ): Promise<{ readonly [K in S['outputs']]: Kept<DType, Keep> }>
  /** Runs for one input after the other: `for await (const { y } of model.stream(prompts))`. */
  stream<const Keep extends boolean = false>(
    inputs:
      | Iterable<{ readonly [K in Exclude<S['inputs'], States>]: AnyTensor }>
      | AsyncIterable<{ readonly [K in Exclude<S['inputs'], States>]: AnyTensor }>,
    options?: ModelRunOptions<Keep>,
  ): AsyncGenerator<{ readonly [K in S['outputs']]: Kept<DType, Keep> }, void>
  /** Frees weights, states and what was built, behind the runs that were asked for. Closing again does nothing. */
  close(): void
}
