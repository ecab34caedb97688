/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The public device: opened in one line, it calls ops on tensors, keeps tensors in its memory, and reports invalid arguments as typed errors.
 * It runs work in the order of the calls.
 */
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { ProgramDecl } from '../../lang/program/program.js'
import type { Tensors } from '../../lang/types.js'
import type { DeviceKind } from '../device.js'
import type { NativeDeviceInfo } from '../native.js'
import type { AnyOp, CallDType, CallInputs, CallOptions, CallResult, NoOthers } from './call_types.js'
import type { DeviceTensor } from './device_tensor.js'
import type { DeclaredInputs, LoadOptions, Model, ProgramLoadOptions, SignatureOf } from './model_types.js'
import type { Tensor } from './tensor.js'

/** Progress of compiling missing kernels. */
export interface CompileProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True if it came from the cache. */
  readonly cached: boolean
}

/** A kind of device that could not be opened, with the reason. */
export interface SkippedDevice {
  readonly kind: DeviceKind
  readonly reason: string
}

export interface OpenOptions {
  /** Folder of the project whose kernels run. By default the nearest one, from the current folder upwards, in which heddle is used. */
  readonly root?: string | undefined
  /**
   * Machine of the device: a name of ~/.ssh/config, or a command prefix such as `docker exec -i box`; this one by default. Nothing has to be installed
   * there. Kernels are compiled here.
   */
  readonly on?: string | undefined
  /** Cancels opening, and later any compilation. */
  readonly signal?: AbortSignal | undefined
  /** Called for each kernel that is compiled or found in the cache, once at least one has to be compiled. */
  readonly onProgress?: ((progress: CompileProgress) => void) | undefined
  /** Called with other notices: the addon is being built, an op of the project hides a shipped one. */
  readonly onNotice?: ((text: string) => void) | undefined
}

export interface UploadOptions {
  /** Layout on the device, as the op that reads the tensor declares it; by default row-major. */
  readonly layout?: LayoutDecl | undefined
  readonly signal?: AbortSignal | undefined
}

/** An open device. Every method throws usage `device.closed` once the device is closed. */
export interface Device extends AsyncDisposable {
  readonly kind: DeviceKind
  /** Current name, memory and versions. */
  readonly info: NativeDeviceInfo
  /** Kinds that were passed over if no kind was requested, with the reasons. */
  readonly skipped: readonly SkippedDevice[]
  /** Folder of the project whose kernels run. */
  readonly root: string
  /**
   * Runs one op: `const { y } = await device.call(rmsNorm, { x, gamma }, { attrs: { eps: 1e-6 } })`. Dimensions and storage types follow from the
   * inputs; options set those that no input fixes. A device tensor that the op updates in place is changed.
   * @throws usage `call.*`, `tensor.*` naming the expected and the given value; environment `call.kernel`, `library.*` for a kernel that was
   * not generated or compiled, `device.memory`; finding `device.fault`, such as an out-of-bounds read; the signal's reason
   */
  call<
    const O extends AnyOp,
    const G extends CallInputs<O>,
    const P extends CallDType<O['types']> = never,
    const Keep extends boolean = false,
  >(op: O, inputs: G & NoOthers<G, O['inputs']>, options?: CallOptions<O, P, Keep>): Promise<CallResult<O, G, P, Keep>>
  /** Copies a tensor to the device; it stays there until it is freed. @throws usage `tensor.*`; environment `device.memory` */
  upload<const D extends DType>(tensor: Tensor<D>, options?: UploadOptions): Promise<DeviceTensor<D>>
  /**
   * Loads a graph with its weights onto the device: `const model = await device.load(layer, { plan: 'fused', weights, attrs: { eps: 1e-6 } })`,
   * then `await model.run({ x })`.
   * @throws usage `load.*` naming the expected and the given value, `layout.unknown` for a layout missing in the option `layouts`; environment
   * `device.memory`; the signal's reason
   */
  load<const D extends GraphDecl, const States extends string = never>(
    graph: D,
    options: LoadOptions<SignatureOf<D>, States>,
  ): Promise<Model<SignatureOf<D>, States>>
  /**
   * Loads a program with its weights onto the device: `const model = await device.load(mixers, { config: { layers: 4 }, weights, dims: { b: 2 } })`.
   * Its states are allocated for the sizes of weights and `dims`, and outlive its runs.
   * @throws like loading a graph; usage `program.*`, `plan.*` for a program that does not compile under the plan
   */
  load<I extends Tensors, C, O extends string, const States extends string>(
    program: ProgramDecl<I, C, O, States>,
    options: ProgramLoadOptions<C, NoInfer<States>>,
  ): Promise<Model<{ inputs: DeclaredInputs<I>; weights: string; attrs: never; outputs: O }, States>>
  /** Waits for running work, then frees the device and all its tensors. Closing again does nothing. */
  close(): Promise<void>
}
