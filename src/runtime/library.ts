/**
 * Kernel sources of programs: a kernel library as built, checked against the manifest of the generated source, or kernels that are compiled on
 * first request (demand.ts). A library built from different source, or with a different argument schema, is refused before anything is
 * launched from it.
 */
import { existsSync } from 'node:fs'
import type { KernelEntry, Manifest } from '../emit/manifest/manifest.js'
import { environmentError } from '../errors.js'
import type { NativeDevice, NativeKernelInfo, NativeLibrary } from './native.js'

const hint = 'run heddle build'

export interface EnsureOptions {
  readonly signal?: AbortSignal | undefined
  /** Name of the step that needs a kernel, for messages. */
  readonly neededBy?: (key: string) => string | undefined
}

/** Kernels of one device, by instance key. */
export interface KernelSource {
  readonly target: NativeLibrary['target']
  /**
   * Resolves when every kernel of these keys can be launched; missing kernels are compiled if the source can do that. Calls may overlap.
   * @throws environment `library.kernel` for a kernel that does not exist and cannot be compiled; errors of compiling
   */
  ensure(keys: Iterable<string>, options?: EnsureOptions): Promise<void>
  /** Called with kernels that the same graphs launch at other numbers of rows, which a source for other machines has to hold. */
  readonly elsewhere?: (keys: Iterable<string>) => void
  /** Library from which to launch a kernel, after `ensure` of its key. */
  of(key: string): NativeLibrary
}

/** Kernels of one library that is loaded whole. */
export interface LoadedKernels extends KernelSource {
  readonly library: NativeLibrary
}

/** Kernel source over a loaded library; it cannot compile others. */
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
 * @throws environment `library.missing` if there is no such file, `library.stale` naming the first kernel that differs from the manifest;
 * kernels that the manifest does not name are ignored
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

/** Describes how a built kernel differs from the manifest's entry; undefined if it does not. */
export function describeDifference(kernel: NativeKernelInfo, entry: KernelEntry): string | undefined {
  if (kernel.digest !== entry.digest)
    return `it was built from source ${shorten(kernel.digest)}, the manifest has ${shorten(entry.digest)}`
  for (const list of ['buffers', 'dims', 'attrs'] as const) {
    if (kernel[list] !== entry[list].length) return `it takes ${kernel[list]} ${list}, the manifest lists ${entry[list].length}`
  }
  return undefined
}

const shorten = (digest: string): string => digest.slice(0, 12)
