/**
 * Opens a device with its kernels: the addon (built when it is missing), the device, the manifest of the project's search path, and kernels
 * that are compiled on demand. In the portable bundle everything is built already.
 */
import { existsSync, realpathSync } from 'node:fs'
import type { Manifest } from '../emit/manifest/manifest.js'
import { isWithin } from '../path_names.js'
import {
  type BuildProgress,
  ensureNative,
  hasCudaDevice,
  installation,
  packageRoot,
  searchManifests,
  type Target,
} from '../toolchain/index.js'
import { type DemandedKernelsOptions, demandedKernels } from './demand.js'
import { type Device, type DeviceName, detectDevices, openDevice } from './device.js'
import { compiledDevice } from './device_name.js'
import { jsByDefault } from './js/default.js'
import { loweredSource } from './js/kernels.js'
import { type KernelSource, loadKernels } from './library.js'
import { openRemote } from './remote/open.js'
import { untunedNote } from './tuned_matmuls.js'

export interface OpenOptions {
  /** The project. Its kernels are searched first, the package's after them. */
  readonly root: string
  /** Model folder to run, if any. If it is the project's folder, or contains it, only the package's own kernels run. */
  readonly model?: string | undefined
  /** Cancels compilation. */
  readonly signal?: AbortSignal | undefined
  /** Called for each kernel that is compiled or found in the cache. */
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Called with other notices: the addon is being built, a name of the project hides a shipped one. */
  readonly onNotice?: ((text: string) => void) | undefined
  /** Optimisation level of source for the CPU device: lower for kernels that only run on small cases. */
  readonly optimise?: DemandedKernelsOptions['optimise']
  /** True to never fall back to `js`: for callers that time or test compiled kernels. */
  readonly compiled?: boolean | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix; this one by default. */
  readonly on?: string | undefined
  /** Purpose of a device of another machine, as others who wait for it read it: `check`. */
  readonly who?: string | undefined
}

/** A device with its kernels, and the manifest of their source. */
export interface OpenKernels {
  readonly device: Device
  readonly library: KernelSource
  readonly manifest: Manifest
}

/** Default device of a machine with a compiler. */
export function defaultDevice(): Target {
  return detectDevices().some(({ kind, available }) => kind === 'cuda' && available) ? 'cuda' : 'simt'
}

/** Builds the addon and the plugins unless they exist, or the device needs none. @throws errors of `ensureNative` */
export async function prepareNative(
  name: DeviceName | undefined,
  { root, signal, onNotice }: Pick<OpenOptions, 'root' | 'signal' | 'onNotice'>,
): Promise<void> {
  if (name === 'js') return
  const configured = process.env.HEDDLE_NATIVE
  const built = installation(root)
  // The user's own folder is used as it is.
  if (built.portable || (configured && configured !== built.native)) return
  // No CUDA is compiled for a machine without a CUDA device: opening the device reports what is missing.
  await ensureNative({ signal, cuda: name !== 'simt' && hasCudaDevice(), onStart: onNotice })
}

/** A device that gets ready while other work is done. */
export interface ReadyingDevice {
  /** Opens the device of this machine, or waits for the one of another machine. */
  open(): Promise<Device>
  /** Closes the device, if it was opened. */
  end(): Promise<void>
}

/**
 * Begins to get a device ready: builds the addon where it is missing, or connects to the machine that the options name. Errors are thrown by `open`:
 * those of `ensureNative`, `openDevice` and `openRemote`.
 */
export async function readyNamed(name: DeviceName | undefined, options: OpenOptions): Promise<ReadyingDevice> {
  const { on, compiled = false } = options
  const chosen = on === undefined ? (name ?? (compiled ? undefined : await jsByDefault(options))) : name
  const ready = on === undefined ? prepareNative(chosen, options).then(() => undefined) : openRemote(chosen, { ...options, on })
  let opened: Device | undefined
  // The device of another machine is open even if nobody asks for it.
  const connected = ready.then(
    (device) => {
      opened = device
    },
    () => undefined,
  )
  return {
    async open() {
      opened = (await ready) ?? openDevice(chosen ?? defaultDevice())
      return opened
    },
    async end() {
      if (on !== undefined) await connected
      opened?.close()
    },
  }
}

/**
 * Opens a device of this machine or of the one that the options name, and builds the addon first where it is missing.
 * @throws errors of `ensureNative`, `openDevice` and `openRemote`
 */
export const openNamed = async (name: DeviceName | undefined, options: OpenOptions): Promise<Device> =>
  (await readyNamed(name, options)).open()

/** The project's folder. A model folder is never a project: its other files came with the model. */
function projectOf({ root, model }: OpenOptions): string {
  if (model === undefined || !existsSync(root) || !existsSync(model)) return root
  return isWithin(realpathSync(model), realpathSync(root)) ? packageRoot() : root
}

/**
 * @param name by default cuda if a GPU works, else simt; js without a C++ compiler
 * @throws environment for a missing device, addon or compiler; usage `manifest.*`
 */
export async function openKernels(name: DeviceName | undefined, options: OpenOptions): Promise<OpenKernels> {
  const root = projectOf(options)
  const searched = await searchManifests(root)
  const { manifest, hidden } = searched
  if (hidden.length > 0) options.onNotice?.(`the project's own definitions override shipped ones: ${hidden.join(', ')}`)
  const { compiled = false } = options
  if (compiled && name !== undefined) compiledDevice(name)
  const device = await openNamed(name, options)
  try {
    const untuned = untunedNote(manifest.matmuls, device.info())
    if (untuned !== undefined) options.onNotice?.(untuned)
    const { portable, library } = installation(root)
    if (device.kind === 'js') return { device, library: loweredSource(root, searched), manifest }
    if (portable) {
      await device.sendLibrary?.(library(device.kind))
      return { device, library: loadKernels(device, library(device.kind), manifest), manifest }
    }
    return { device, library: demandedKernels(device, searched, { ...options, root }), manifest }
  } catch (error) {
    device.close()
    throw error
  }
}
