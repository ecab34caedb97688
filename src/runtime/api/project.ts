/**
 * What a device runs kernels of: a project, with the shipped ones behind its own. Its text is read and its kernels are compiled when they are
 * first needed, so that a device opens where nothing has been generated yet.
 */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Manifest } from '../../emit/manifest.js'
import { installation, searchManifests } from '../../toolchain/index.js'
import { demandedKernels } from '../demand.js'
import type { Device as NativeDevice } from '../device.js'
import { type KernelSource, loadKernels } from '../library.js'
import type { OpenOptions } from '../open.js'

/** What a device has to launch. */
export interface Project {
  readonly manifest: Manifest
  readonly kernels: KernelSource
}

/** How a device comes by its project, when it first needs it. */
export type OpenProject = (device: NativeDevice) => Promise<Project>

/** The nearest folder, from `from` upwards, that heddle has worked in; `from` itself where there is none. */
export function findRoot(from: string = process.cwd()): string {
  const start = resolve(from)
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'generated', 'manifest.json')) || existsSync(join(folder, '.heddle'))) return folder
  }
  return start
}

/** The project in a folder, whose kernels are compiled on demand; in the portable bundle they are all there. */
export const projectIn =
  (options: OpenOptions): OpenProject =>
  async (device) => {
    const searched = await searchManifests(options.root)
    const { manifest, hidden } = searched
    if (hidden.length > 0) options.onNotice?.(`the project's own take the place of what is shipped: ${hidden.join(', ')}`)
    const { portable, library } = installation(options.root)
    const kernels = portable ? loadKernels(device, library(device.kind), manifest) : demandedKernels(device, searched, options)
    return { manifest, kernels }
  }
