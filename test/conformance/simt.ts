/** The simt device of this checkout, with the shipped kernels, built as needed. */
import { fileURLToPath } from 'node:url'
import { graphs, layouts, ops, plans } from '../../specs/index.js'
import type { Manifest } from '../../src/emit/manifest.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { linkKernels } from '../../src/fuse/link.js'
import { planAll } from '../../src/fuse/plans.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import type { Subject } from '../../src/verify/conformance.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the addon and the plugins, and opens the device. */
export async function openSimt(): Promise<Device> {
  const { folder } = await buildNative({ root })
  process.env.HEDDLE_NATIVE ??= folder
  return openDevice('simt')
}

export type OpenSubject = Subject & { readonly device: Device }

/** The device with every kernel of the manifest, and the IR they were generated from. */
export async function openSubject(manifest: Manifest): Promise<OpenSubject> {
  const device = await openSimt()
  const { library } = await buildKernels({ target: 'simt', root })
  const { kernels: read, standard, layouts: lowered } = readSpecsOrThrow({ root, specs: ['specs'] })
  const { kernels, templates } = linkKernels(planAll(plans, graphs, read, lowered), read, standard, graphs)
  const byOp = new Map([...kernels, ...templates].map((kernel) => [kernel.name, kernel]))
  return { device, library: loadKernels(device, library, manifest), layouts, ops, kernels: byOp }
}
