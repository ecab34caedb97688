/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A device as users have it: opened in one line, it calls ops on tensors, keeps tensors in its memory, and says by typed errors what is
 * wrong with what it was given. It runs what it is asked for in the order it was asked.
 */
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { ProgramDecl } from '../../lang/program.js'
import type { Tensors } from '../../lang/types.js'
import type { DeviceKind } from '../device.js'
import type { NativeDeviceInfo } from '../native.js'
import type { AnyOp, CallDType, CallInputs, CallOptions, CallResult, NoOthers } from './call_types.js'
import type { DeviceTensor } from './device_tensor.js'
import type { DeclaredInputs, LoadOptions, Model, ProgramLoadOptions, SignatureOf } from './model_types.js'
import type { Tensor } from './tensor.js'

/** How far compiling the kernels that are missing has come. */
export interface CompileProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True when it was compiled before. */
  readonly cached: boolean
}

/** A kind of device that was not taken, and why. */
export interface SkippedDevice {
  readonly kind: DeviceKind
  readonly reason: string
}

export interface OpenOptions {
  /** The project whose kernels run: a folder. By default the nearest one, from the current folder upwards, that heddle has worked in. */
  readonly root?: string | undefined
  /** Cancels opening, and later whatever is compiled. */
  readonly signal?: AbortSignal | undefined
  /** Called for every kernel that is compiled or found in the cache, once at least one has to be compiled. */
  readonly onProgress?: ((progress: CompileProgress) => void) | undefined
  /** Called with what else takes long or is worth a line: the addon is built, an own op hides a shipped one. */
  readonly onNotice?: ((text: string) => void) | undefined
}

export interface UploadOptions {
  /** How it is to lie on the device, for an op that takes it so; row-major where undefined. */
  readonly layout?: LayoutDecl | undefined
  readonly signal?: AbortSignal | undefined
}

/** Every method throws usage `device.closed` once the device was closed. */
export interface Device extends AsyncDisposable {
  readonly kind: DeviceKind
  /** Name, memory and versions, as they are now. */
  readonly info: NativeDeviceInfo
  /** Where no kind was asked for: the kinds that were tried first, and why they were not taken. */
  readonly skipped: readonly SkippedDevice[]
  /** The project whose kernels run. */
  readonly root: string
  /**
   * Runs one op: `const { y } = await device.call(rmsNorm, { x, gamma }, { attrs: { eps: 1e-6 } })`. Dimensions and storage types follow
   * from the inputs; those that no input has are given as options. A device tensor that the op updates in place is changed.
   * @throws usage `call.*`, `tensor.*` naming what was given and what is allowed; environment `call.kernel`, `library.*` for a kernel that
   * was not generated or compiled, `device.memory`; finding `device.fault`, such as a read outside a tensor; the signal's reason
   */
  call<
    const O extends AnyOp,
    const G extends CallInputs<O>,
    const P extends CallDType<O['types']> = never,
    const Keep extends boolean = false,
  >(op: O, inputs: G & NoOthers<G, O['inputs']>, options?: CallOptions<O, P, Keep>): Promise<CallResult<O, G, P, Keep>>
  /** Copies a tensor to the device, where it stays until it is freed. @throws usage `tensor.*`; environment `device.memory` */
  upload<const D extends DType>(tensor: Tensor<D>, options?: UploadOptions): Promise<DeviceTensor<D>>
  /**
   * Brings a graph with its weights to the device: `const model = await device.load(layer, { plan: 'fused', weights, attrs: { eps: 1e-6 } })`,
   * then `await model.run({ x })`.
   * @throws usage `load.*` naming what was given and what is allowed, `layout.unknown` for a layout that the option has to name; environment
   * `device.memory`; the signal's reason
   */
  load<const D extends GraphDecl, const States extends string = never>(
    graph: D,
    options: LoadOptions<SignatureOf<D>, States>,
  ): Promise<Model<SignatureOf<D>, States>>
  /**
   * Brings a program with its weights to the device: `const model = await device.load(mixers, { config: { layers: 4 }, weights, dims: { b: 2 } })`.
   * Its states are allocated for the sizes that weights and `dims` say, and outlive its runs.
   * @throws like that of a graph; usage `program.*`, `plan.*` for what cannot be put together
   */
  load<I extends Tensors, C, O extends string, const States extends string>(
    program: ProgramDecl<I, C, O, States>,
    options: ProgramLoadOptions<C, NoInfer<States>>,
  ): Promise<Model<{ inputs: DeclaredInputs<I>; weights: string; attrs: never; outputs: O }, States>>
  /** Waits for what runs, and frees the device and every tensor on it. Closing again does nothing. */
  close(): Promise<void>
}
