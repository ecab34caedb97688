/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A device as users have it: opened in one line, it calls ops on tensors, keeps tensors in its memory, and says by typed errors what is
 * wrong with what it was given. It runs what it is asked for in the order it was asked.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HeddleError, usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { BuildProgress as CompileProgress } from '../../toolchain/index.js'
import { type DeviceKind, deviceKinds, type Device as NativeDevice, openDevice as openNative } from '../device.js'
import type { NativeDeviceInfo } from '../native.js'
import { prepareNative } from '../open.js'
import { callOp, checkOptions } from './call.js'
import type { AnyOp, CallDType, CallInputs, CallOptions, CallResult, NoOthers } from './call_types.js'
import { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import { bytesIn, formBytes } from './form.js'
import { loadModel } from './load.js'
import type { LoadOptions, Model, SignatureOf } from './model_types.js'
import { nameHint } from './names.js'
import { findRoot, projectIn } from './project.js'
import { checkTensor, type Tensor } from './tensor.js'

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
  /** Waits for what runs, and frees the device and every tensor on it. Closing again does nothing. */
  close(): Promise<void>
}

/** The GPU first. */
const preferred: readonly DeviceKind[] = deviceKinds.toReversed()

/**
 * Opens a device: the GPU (`cuda`), the CPU device (`simt`), or where no kind is given the GPU if there is one and else the CPU device.
 * The addon is built
 * first where it is missing.
 * @throws environment `device.unavailable`, `device.plugin`, `toolchain.*` for what the machine lacks; usage `device.kind`, `device.root`
 */
export async function openDevice(kind?: DeviceKind, options: OpenOptions = {}): Promise<Device> {
  checkOptions('device', 'openDevice', ['root', 'signal', 'onProgress', 'onNotice'], options)
  options.signal?.throwIfAborted()
  const root = options.root === undefined ? findRoot() : resolve(options.root)
  if (!existsSync(root)) throw usageError('device.root', `there is no folder ${root}`)
  if (kind !== undefined && !deviceKinds.includes(kind)) {
    throw usageError('device.kind', `there is no device ${JSON.stringify(kind)}`, {
      hint: nameHint('devices', deviceKinds, String(kind)),
    })
  }
  const opening = { ...options, root }
  await prepareNative(kind, opening)
  const open = (wanted: DeviceKind, skipped: readonly SkippedDevice[]): Device => {
    const native = openNative(wanted)
    return deviceOf(native, root, skipped, new DeviceCore(native, projectIn(opening)))
  }
  if (kind !== undefined) return open(kind, [])
  const skipped: SkippedDevice[] = []
  for (const tried of preferred) {
    try {
      return open(tried, skipped)
    } catch (error) {
      if (tried === preferred.at(-1) || !isAbsent(error)) throw error
      skipped.push({ kind: tried, reason: error.message })
    }
  }
  throw new Error('internal: there is no kind of device')
}

/** Whether the machine has no device of a kind; one that is there and broken is not passed over. */
const isAbsent = (error: unknown): error is HeddleError =>
  error instanceof HeddleError && ['device.unavailable', 'device.plugin'].includes(error.code)

/** The face of an open device. */
export function deviceOf(native: NativeDevice, root: string, skipped: readonly SkippedDevice[], core: DeviceCore): Device {
  const close = (): Promise<void> => core.close()
  return {
    kind: native.kind,
    skipped,
    root,
    get info() {
      core.expectOpen('info')
      return native.info()
    },
    // The results have the types that the declaration gives them: callOp checks and makes them by it.
    call: async (op, inputs, options) => (await callOp(core, op, inputs, options)) as never,
    async upload(given, options = {}) {
      core.expectOpen('upload')
      checkOptions('tensor', 'upload', ['layout', 'signal'], options)
      options.signal?.throwIfAborted()
      const tensor = checkTensor('upload', 'tensor', given)
      const form = { dtype: given.dtype, shape: [...tensor.shape], layout: options.layout }
      checkLayout(form)
      const bytes = formBytes(form)
      const buffer = native.allocate(Math.max(bytes, 1))
      try {
        await core.track(buffer.write(0, bytesIn(tensor, options.layout)))
        options.signal?.throwIfAborted()
      } catch (error) {
        buffer.release()
        throw error
      }
      return new DeviceTensor(form, core, { buffer, offset: 0, bytes })
    },
    load: async (graph, options) => (await loadModel(core, graph, options)) as never,
    close,
    [Symbol.asyncDispose]: close,
  }
}

function checkLayout({ shape, layout }: { readonly shape: readonly number[]; readonly layout: LayoutDecl | undefined }): void {
  if (layout === undefined || layout.axes.length === shape.length) return
  throw usageError(
    'tensor.layout',
    `layout ${layout.name} has axes ${layout.axes.join(' ')}, the tensor has shape [${shape.join(', ')}]`,
  )
}
