/**
 * Kernels that are compiled when a program first requests them: the kernel source of `run`, `demo` and the like. Kernels requested together
 * are compiled together into one library; later ones are loaded in addition.
 */
import { availableParallelism } from 'node:os'
import pLimit, { type LimitFunction } from 'p-limit'
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { environmentError } from '../errors.js'
import {
  architectureOn,
  type BuildProgress,
  type DemandOptions,
  demandKernels,
  type SearchedManifest,
  type Target,
} from '../toolchain/index.js'
import { architectureOf } from './device.js'
import { describeDifference, type EnsureOptions, type KernelSource } from './library.js'
import type { NativeDevice, NativeLibrary } from './native.js'

export interface DemandedKernelsOptions {
  readonly root: string
  /** Cancels all compilation, for every caller. */
  readonly signal?: AbortSignal | undefined
  /** Called for every file that is compiled or found in the cache, once at least one has to be compiled. */
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Optimisation level of source for the CPU device: lower for kernels that only run on small cases. */
  readonly optimise?: DemandOptions['optimise']
}

/** Kernels of a device that are loaded or being compiled. */
interface Demand {
  readonly device: NativeDevice
  readonly searched: SearchedManifest
  readonly options: DemandedKernelsOptions
  readonly target: Target
  /** GPU architecture to compile for; undefined on the CPU device, and for a build for all architectures. */
  readonly architecture: string | undefined
  /** Limit of compiler processes, shared by overlapping calls. */
  readonly jobs: LimitFunction
  readonly progress: ReturnType<typeof combinedProgress>
  readonly entries: ReadonlyMap<string, KernelEntry>
  /** Library of each kernel that is ready, by key. */
  readonly loaded: Map<string, NativeLibrary>
  /** Loaded libraries by path. */
  readonly files: Map<string, NativeLibrary>
  /** Kernels being compiled: a kernel that two calls request is compiled once. */
  readonly underway: Map<string, Promise<unknown>>
}

/** Kernel source over the search path of a project. It loads nothing until the first request. */
export function demandedKernels(device: NativeDevice, searched: SearchedManifest, options: DemandedKernelsOptions): KernelSource {
  const info = device.info()
  if (info.kind === 'js') throw new Error('internal: nothing is compiled for the device js')
  const demand: Demand = {
    device,
    searched,
    options,
    target: info.kind,
    architecture: info.kind === 'cuda' ? architectureOn(architectureOf(info).replace(/\D/g, '')) : undefined,
    jobs: pLimit(availableParallelism()),
    progress: combinedProgress(options.onProgress),
    entries: new Map(searched.manifest.kernels.map((entry) => [entry.key, entry])),
    loaded: new Map(),
    files: new Map(),
    underway: new Map(),
  }
  return {
    target: info.kind,
    ensure: (keys, ensuring) => ensure(demand, keys, ensuring),
    of(key) {
      const library = demand.loaded.get(key)
      if (library === undefined) throw new Error(`internal: kernel ${key} is launched before it is requested`)
      return library
    },
  }
}

async function ensure(demand: Demand, keys: Iterable<string>, ensuring: EnsureOptions = {}): Promise<void> {
  const { loaded, underway } = demand
  const absent = [...new Set(keys)].filter((key) => !loaded.has(key))
  const others = absent.flatMap((key) => underway.get(key) ?? [])
  const missing = absent.filter((key) => !underway.has(key)).map((key) => entryOf(demand, key, ensuring))
  if (missing.length > 0) {
    const making = compileAndLoad(demand, missing, ensuring).finally(() =>
      missing.forEach(({ key }) => void underway.delete(key)),
    )
    for (const { key } of missing) underway.set(key, making)
    await making
  }
  if (others.length === 0) return
  // A failure of another call does not fail this one, which tries again.
  await Promise.allSettled(others)
  await ensure(demand, absent, ensuring)
}

function entryOf({ entries }: Demand, key: string, { neededBy }: EnsureOptions): KernelEntry {
  const entry = entries.get(key)
  if (entry !== undefined) return entry
  const user = neededBy?.(key)
  throw environmentError('library.kernel', `there is no kernel ${key}${user === undefined ? '' : `, which ${user} needs`}`, {
    hint: 'run heddle gen',
  })
}

/** Compiles kernels into a library, loads it and checks it against the manifest. */
async function compileAndLoad(demand: Demand, missing: readonly KernelEntry[], ensuring: EnsureOptions): Promise<void> {
  const { device, searched, options, target, architecture, jobs, progress, loaded, files } = demand
  const signals = [options.signal, ensuring.signal].filter((signal) => signal !== undefined)
  const report = progress.begin(new Set(missing.map(({ file }) => file)).size)
  const { library: path } = await demandKernels(
    missing.map((entry) => ({
      entry,
      folder: searched.folderOf(entry.key),
      asItLies: searched.asItLies?.(entry.key),
    })),
    { ...options, jobs, onProgress: report.step, target, architecture, signal: AbortSignal.any(signals) },
  ).finally(report.end)
  if (!files.has(path)) await device.sendLibrary?.(path)
  const library = files.get(path) ?? device.loadLibrary(path)
  files.set(path, library)
  const kernels = new Map(library.kernels.map((kernel) => [kernel.key, kernel]))
  for (const entry of missing) {
    const kernel = kernels.get(entry.key)
    const difference = kernel === undefined ? 'it is missing' : describeDifference(kernel, entry)
    if (difference !== undefined) {
      const message = `kernel ${entry.key} in ${path} differs from the manifest: ${difference}`
      throw environmentError('library.stale', message, { hint: 'run heddle gen, then heddle clean' })
    }
    loaded.set(entry.key, library)
  }
}

/** Combined progress of overlapping calls. */
function combinedProgress(onProgress: DemandedKernelsOptions['onProgress']) {
  let [calls, done, total] = [0, 0, 0]
  return {
    begin(files: number) {
      calls += 1
      total += files
      return {
        step: (progress: BuildProgress): void => {
          done += 1
          onProgress?.({ ...progress, done, total })
        },
        end: (): void => {
          calls -= 1
          if (calls === 0) [done, total] = [0, 0]
        },
      }
    },
  }
}
