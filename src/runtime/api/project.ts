/**
 * The project whose kernels a device runs; shipped kernels follow its own. Its generated source is read and its kernels are compiled at first
 * use, so that a device opens before anything has been generated.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import type { Manifest } from '../../emit/manifest/manifest.js'
import { installation, packageRoot, type SearchedManifest, searchManifests } from '../../toolchain/index.js'
import { demandedKernels } from '../demand.js'
import type { Device } from '../device.js'
import { loweredSource } from '../js/kernels.js'
import { type KernelSource, loadKernels } from '../library.js'
import type { OpenOptions } from '../open.js'
import { untunedNote } from '../tuned_matmuls.js'

/** Kernels that a device can launch. */
export interface Project {
  readonly manifest: Manifest
  readonly kernels: KernelSource
  /** True if a kernel belongs to the package and not to the project. */
  readonly isShipped?: (key: string) => boolean
}

/** Loads the project of a device at its first use. */
export type OpenProject = (device: Device) => Promise<Project>

/**
 * Finds the nearest folder, from `from` upwards, that has generated source or whose package depends on heddle; `from` itself if there is none. A
 * folder with a model in it is never a project, regardless of its other files: the package's own kernels run there.
 */
export function findRoot(from: string = process.cwd()): string {
  const start = resolve(from)
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    if (isProject(folder) && !holdsModel(folder)) return folder
  }
  return holdsModel(start) ? packageRoot() : start
}

const isProject = (folder: string): boolean =>
  existsSync(join(folder, 'generated', 'manifest.json')) || namesHeddle(join(folder, 'package.json'))

function namesHeddle(path: string): boolean {
  try {
    const lists = packageSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    return Object.values(lists).some((list) => list !== undefined && Object.hasOwn(list, 'heddle'))
  } catch {
    return false
  }
}

/** Lists of a package.json that may name heddle. */
const packageSchema = z.object({
  dependencies: z.record(z.string(), z.unknown()).optional(),
  devDependencies: z.record(z.string(), z.unknown()).optional(),
  peerDependencies: z.record(z.string(), z.unknown()).optional(),
})

/** True if a folder has the form in which Hugging Face saves a model. */
const holdsModel = (folder: string): boolean =>
  existsSync(join(folder, 'config.json')) && readdirSync(folder).some((name) => /\.(safetensors|gguf)$/.test(name))

/** Project in a folder, with kernels compiled on demand; in the portable bundle all are precompiled. */
export const projectIn =
  (options: OpenOptions): OpenProject =>
  async (device) => {
    const searched = await searchManifests(options.root)
    const { manifest, hidden } = searched
    if (hidden.length > 0) options.onNotice?.(`the project's own definitions override shipped ones: ${hidden.join(', ')}`)
    const untuned = untunedNote(manifest.matmuls, device.info())
    if (untuned !== undefined) options.onNotice?.(untuned)
    const { generated } = installation(options.root)
    const kernels = await kernelsOn(device, searched, options)
    const isShipped = (key: string): boolean => generated.length > 1 && searched.folderOf(key) === generated.at(-1)
    return { manifest, kernels, isShipped }
  }

/** Kernels of a project for a device: evaluated on `js`, precompiled in the portable bundle, otherwise compiled on demand. */
async function kernelsOn(device: Device, searched: SearchedManifest, options: OpenOptions): Promise<KernelSource> {
  const { portable, library } = installation(options.root)
  if (device.kind === 'js') return loweredSource(options.root, searched)
  if (!portable) return demandedKernels(device, searched, options)
  await device.sendLibrary?.(library(device.kind))
  return loadKernels(device, library(device.kind), searched.manifest)
}
