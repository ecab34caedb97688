/**
 * Opens what programs run on: the addon (built when it is missing), a device, the manifest of the project's search path, and kernels that
 * are compiled when they are asked for. In the portable bundle everything is built already.
 */
import { existsSync, realpathSync } from 'node:fs'
import { isAbsolute, relative, sep } from 'node:path'
import type { Manifest } from '../emit/manifest.js'
import {
  type BuildProgress,
  ensureNative,
  hasCudaDevice,
  installation,
  packageRoot,
  searchManifests,
} from '../toolchain/index.js'
import { type DemandedKernelsOptions, demandedKernels } from './demand.js'
import { type Device, type DeviceKind, type DeviceName, detectDevices, openDevice } from './device.js'
import { type KernelSource, loadKernels } from './library.js'
import { untunedNote } from './tuned_matmuls.js'

export interface OpenOptions {
  /** The project; its kernels are found first, the package's behind them. */
  readonly root: string
  /** The model folder that is run, if one is. Where it is the project's, or holds it, the package's own kernels run and no others. */
  readonly model?: string | undefined
  /** Cancels what is compiled. */
  readonly signal?: AbortSignal | undefined
  /** Called for every kernel that is compiled or found in the cache. */
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Called with what else takes long or is worth a line: the addon is built, an own name hides a shipped one. */
  readonly onNotice?: ((text: string) => void) | undefined
  /** How far text for the CPU device is optimised: less for what is run on small cases only. */
  readonly optimise?: DemandedKernelsOptions['optimise']
}

/** A device with its kernels, and the manifest of the text they are built from. */
export interface OpenKernels {
  readonly device: Device
  readonly library: KernelSource
  readonly manifest: Manifest
}

/** The device to use when the caller names none. */
export function defaultDevice(): DeviceKind {
  return detectDevices().some(({ kind, available }) => kind === 'cuda' && available) ? 'cuda' : 'simt'
}

/** Builds the addon and the plugins unless they are there. @throws what `ensureNative` throws */
export async function prepareNative(
  name: DeviceName | undefined,
  { root, signal, onNotice }: Pick<OpenOptions, 'root' | 'signal' | 'onNotice'>,
): Promise<void> {
  const stated = process.env.HEDDLE_NATIVE
  const built = installation(root)
  // The user's own folder is used as it is.
  if (built.portable || (stated && stated !== built.native)) return
  // No CUDA is compiled for a machine without a CUDA device: opening it says what is missing.
  await ensureNative({ signal, cuda: name !== 'simt' && hasCudaDevice(), onStart: onNotice })
}

/** A model folder is never a project: what else lies in it came with the model. */
function projectOf({ root, model }: OpenOptions): string {
  if (model === undefined || !existsSync(root) || !existsSync(model)) return root
  const way = relative(realpathSync(model), realpathSync(root))
  return way.split(sep)[0] === '..' || isAbsolute(way) ? root : packageRoot()
}

/**
 * @param name cuda where a GPU works, else simt, when it is left out
 * @throws environment for a missing device, addon or compiler; usage `manifest.*`
 */
export async function openKernels(name: DeviceName | undefined, options: OpenOptions): Promise<OpenKernels> {
  const root = projectOf(options)
  const searched = await searchManifests(root)
  const { manifest, hidden } = searched
  if (hidden.length > 0) options.onNotice?.(`the project's own take the place of what is shipped: ${hidden.join(', ')}`)
  await prepareNative(name, options)
  const device = openDevice(name ?? defaultDevice())
  try {
    const untuned = untunedNote(manifest.matmuls, device.info())
    if (untuned !== undefined) options.onNotice?.(untuned)
    const { portable, library } = installation(root)
    if (portable) return { device, library: loadKernels(device, library(device.kind), manifest), manifest }
    return { device, library: demandedKernels(device, searched, { ...options, root }), manifest }
  } catch (error) {
    device.close()
    throw error
  }
}
