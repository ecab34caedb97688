/**
 * Kernels that are compiled when a program first asks for them: the source that `run`, `demo` and the like use. What is asked for
 * together is compiled together and lies in one library; what is asked for later is loaded beside it.
 */
import type { KernelEntry } from '../emit/manifest.js'
import { environmentError } from '../errors.js'
import {
  architectureOn,
  type BuildProgress,
  type DemandOptions,
  demandKernels,
  type SearchedManifest,
} from '../toolchain/index.js'
import { architectureOf } from './device.js'
import { describeDifference, type EnsureOptions, type KernelSource } from './library.js'
import type { NativeDevice, NativeLibrary } from './native.js'

export interface DemandedKernelsOptions {
  readonly root: string
  /** Cancels what is compiled, whoever asked for it. */
  readonly signal?: AbortSignal | undefined
  /** Called for every file that is compiled or found, once at least one has to be compiled. */
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** How far text for the CPU device is optimised: less for what is run on small cases only. */
  readonly optimise?: DemandOptions['optimise']
}

/** A kernel source over the search path of a project. It opens nothing until it is asked. */
export function demandedKernels(device: NativeDevice, searched: SearchedManifest, options: DemandedKernelsOptions): KernelSource {
  const info = device.info()
  const architecture = info.kind === 'cuda' ? architectureOn(architectureOf(info).replace(/\D/g, '')) : undefined
  const entries = new Map(searched.manifest.kernels.map((entry) => [entry.key, entry]))
  const loaded = new Map<string, NativeLibrary>()
  const files = new Map<string, NativeLibrary>()

  const entryOf = (key: string, { neededBy }: EnsureOptions): KernelEntry => {
    const entry = entries.get(key)
    if (entry !== undefined) return entry
    const user = neededBy?.(key)
    throw environmentError('library.kernel', `there is no kernel ${key}${user === undefined ? '' : `, which ${user} needs`}`, {
      hint: 'run heddle gen',
    })
  }
  const load = async (keys: Iterable<string>, ensuring: EnsureOptions): Promise<void> => {
    const missing = [...new Set(keys)].filter((key) => !loaded.has(key)).map((key) => entryOf(key, ensuring))
    if (missing.length === 0) return
    const signals = [options.signal, ensuring.signal].filter((signal) => signal !== undefined)
    const { library: path } = await demandKernels(
      missing.map((entry) => ({ entry, folder: searched.folderOf(entry.key) })),
      { ...options, target: info.kind, architecture, signal: AbortSignal.any(signals) },
    )
    const library = files.get(path) ?? device.loadLibrary(path)
    files.set(path, library)
    const kernels = new Map(library.kernels.map((kernel) => [kernel.key, kernel]))
    for (const entry of missing) {
      const kernel = kernels.get(entry.key)
      const difference = kernel === undefined ? 'it is missing' : describeDifference(kernel, entry)
      if (difference !== undefined) {
        const message = `kernel ${entry.key} in ${path} is not what the manifest describes: ${difference}`
        throw environmentError('library.stale', message, { hint: 'run heddle gen, then heddle clean' })
      }
      loaded.set(entry.key, library)
    }
  }
  // One after the other, so that what two programs need is compiled once; a failure of one is not the next one's.
  let turn: Promise<unknown> = Promise.resolve()
  return {
    target: info.kind,
    ensure(keys, ensuring = {}) {
      const asked = turn.then(() => load(keys, ensuring))
      turn = asked.catch(() => undefined)
      return asked
    },
    of(key) {
      const library = loaded.get(key)
      if (library === undefined) throw new Error(`internal: kernel ${key} is launched before it is asked for`)
      return library
    },
  }
}
