/**
 * Loading a kernel library and holding it against the manifest of the generated text. A library built from other text, or with
 * another argument schema, is refused before anything is launched from it.
 */
import { existsSync } from 'node:fs'
import type { KernelEntry, Manifest } from '../emit/manifest.js'
import { environmentError } from '../errors.js'
import type { NativeDevice, NativeKernelInfo, NativeLibrary } from './native.js'

const hint = 'run heddle build'

/**
 * Loads the kernel library at `path` for a device.
 * @throws environment `library.missing` when there is no such file, `library.stale` naming the first kernel that the manifest
 * describes otherwise; kernels the manifest does not name are left alone
 */
export function loadKernels(device: NativeDevice, path: string, manifest: Manifest): NativeLibrary {
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
  return library
}

/** In what a built kernel differs from the manifest's entry, in words. */
function describeDifference(kernel: NativeKernelInfo, entry: KernelEntry): string | undefined {
  if (kernel.digest !== entry.digest)
    return `it was built from text ${shorten(kernel.digest)}, the manifest has ${shorten(entry.digest)}`
  for (const list of ['buffers', 'dims', 'attrs'] as const) {
    if (kernel[list] !== entry[list].length) return `it takes ${kernel[list]} ${list}, the manifest lists ${entry[list].length}`
  }
  return undefined
}

const shorten = (digest: string): string => digest.slice(0, 12)
