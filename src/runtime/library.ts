/**
 * Where programs get their kernels from: a kernel library as it was built, held against the manifest of the generated text, or
 * kernels that are compiled when they are first asked for (demand.ts). A library built from other text, or with another argument
 * schema, is refused before anything is launched from it.
 */
import { existsSync } from 'node:fs'
import type { KernelEntry, Manifest } from '../emit/manifest.js'
import { environmentError } from '../errors.js'
import type { NativeDevice, NativeKernelInfo, NativeLibrary } from './native.js'

const hint = 'run heddle build'

export interface EnsureOptions {
  readonly signal?: AbortSignal | undefined
  /** What needs a kernel, in the words of messages. */
  readonly neededBy?: (key: string) => string | undefined
}

/** Kernels of one device, by instance key. */
export interface KernelSource {
  readonly target: NativeLibrary['target']
  /**
   * Resolves when every kernel of these keys can be launched; what is missing is compiled where the source can do that. Calls may overlap.
   * @throws environment `library.kernel` for a kernel that is neither there nor can be made; what compiling throws
   */
  ensure(keys: Iterable<string>, options?: EnsureOptions): Promise<void>
  /** The library to launch a kernel from, which `ensure` was asked for. */
  of(key: string): NativeLibrary
}

/** The kernels of one library that is loaded whole. */
export interface LoadedKernels extends KernelSource {
  readonly library: NativeLibrary
}

/** The kernels of a library, of which none can be added. */
export function loadedKernels(library: NativeLibrary): LoadedKernels {
  const known = new Set(library.kernels.map(({ key }) => key))
  const expectKernel = (key: string, { neededBy }: EnsureOptions = {}): void => {
    if (known.has(key)) return
    const user = neededBy?.(key)
    const need = user === undefined ? '' : `, which ${user} needs`
    throw environmentError('library.kernel', `the ${library.target} kernel library has no kernel ${key}${need}`, { hint })
  }
  return {
    target: library.target,
    library,
    async ensure(keys, options) {
      for (const key of keys) expectKernel(key, options)
    },
    of(key) {
      expectKernel(key)
      return library
    },
  }
}

/**
 * Loads the kernel library at `path` for a device.
 * @throws environment `library.missing` when there is no such file, `library.stale` naming the first kernel that the manifest
 * describes otherwise; kernels the manifest does not name are left alone
 */
export function loadKernels(device: NativeDevice, path: string, manifest: Manifest): LoadedKernels {
  if (!existsSync(path)) throw environmentError('library.missing', `there is no kernel library ${path}`, { hint })
  const library = device.loadLibrary(path)
  const entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
  for (const kernel of library.kernels) {
    const entry = entries.get(kernel.key)
    const difference = entry === undefined ? undefined : describeDifference(kernel, entry)
    if (difference !== undefined) {
      throw environmentError('library.stale', `kernel ${kernel.key} in ${path} is out of date: ${difference}`, { hint })
    }
  }
  return loadedKernels(library)
}

/** In what a built kernel differs from the manifest's entry, in words. */
export function describeDifference(kernel: NativeKernelInfo, entry: KernelEntry): string | undefined {
  if (kernel.digest !== entry.digest)
    return `it was built from text ${shorten(kernel.digest)}, the manifest has ${shorten(entry.digest)}`
  for (const list of ['buffers', 'dims', 'attrs'] as const) {
    if (kernel[list] !== entry[list].length) return `it takes ${kernel[list]} ${list}, the manifest lists ${entry[list].length}`
  }
  return undefined
}

const shorten = (digest: string): string => digest.slice(0, 12)
