/**
 * What a project has for calls: the folder of its addon, what was generated for it, and its compiled kernels. Everything is read when it is
 * first needed, so that a device opens where nothing has been generated yet.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type Manifest, manifestSchema } from '../../emit/manifest.js'
import { environmentError, usageError } from '../../errors.js'
import { installation } from '../../toolchain/installation.js'
import type { Device as NativeDevice } from '../device.js'
import { loadKernels } from '../library.js'
import type { NativeLibrary } from '../native.js'

/** Compiled kernels of one device, by instance key. */
export interface KernelSource {
  /**
   * Resolves when every kernel of these keys can be launched; what is missing is compiled where the source can do that. Calls may overlap.
   * @throws environment `library.*` for a kernel that is neither there nor can be made; what compiling throws
   */
  ensure(keys: Iterable<string>, signal?: AbortSignal): Promise<void>
  /** The library to launch a kernel from, which `ensure` was asked for. */
  of(key: string): NativeLibrary
}

/** What a device has to launch. */
export interface Project {
  readonly root: string
  readonly manifest: Manifest
  readonly kernels: KernelSource
}

/** How a device comes by its project: once, when it is first needed. */
export type OpenProject = (device: NativeDevice, root: string) => Promise<Project>

/** The nearest folder, from `from` upwards, that heddle has worked in; `from` itself where there is none. */
export function findRoot(from: string = process.cwd()): string {
  const start = resolve(from)
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'generated', 'manifest.json')) || existsSync(join(folder, '.heddle'))) return folder
  }
  return start
}

/** The folder of the project's addon; undefined where it is to be found by itself, as HEDDLE_NATIVE or in a checkout. */
export function nativeOf(root: string): string | undefined {
  const { native } = installation(root)
  return !process.env.HEDDLE_NATIVE && existsSync(join(native, 'heddle.node')) ? native : undefined
}

/** The project's manifest, and the kernel library that `heddle build` left. @throws usage `manifest.missing`, `manifest.invalid` */
export const openProject: OpenProject = async (device, root) => {
  const { generated, library: pathOf } = installation(root)
  const manifest = await readManifest(join(generated, 'manifest.json'))
  let library: NativeLibrary | undefined
  let keys: ReadonlySet<string> = new Set()
  const open = (): NativeLibrary => {
    library ??= loadLibrary()
    return library
  }
  const loadLibrary = (): NativeLibrary => {
    const loaded = loadKernels(device, pathOf(device.kind), manifest)
    keys = new Set(loaded.kernels.map(({ key }) => key))
    return loaded
  }
  const kernels: KernelSource = {
    async ensure(wanted) {
      open()
      for (const key of wanted) {
        if (keys.has(key)) continue
        throw environmentError('library.kernel', `the ${device.kind} kernel library of ${root} has no kernel ${key}`, {
          hint: 'run heddle build',
        })
      }
    },
    of: open,
  }
  return { root, manifest, kernels }
}

async function readManifest(path: string): Promise<Manifest> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw usageError('manifest.missing', `cannot read ${path}`, { hint: 'run heddle gen', cause })
  })
  try {
    return manifestSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw usageError('manifest.invalid', `${path} is not a manifest`, { hint: 'run heddle gen', cause })
  }
}
