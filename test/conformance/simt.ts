/** The simt device of this checkout, with the shipped kernels, built as needed. */
import { fileURLToPath } from 'node:url'
import { graphs, layouts, ops, plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { openMemo } from '../../src/memo.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { openKernels } from '../../src/runtime/open.js'
import { linkKernels } from '../../src/search/link.js'
import { planAll } from '../../src/search/plans.js'
import { buildNative } from '../../src/toolchain/index.js'
import { readVerifiedGroups } from '../../src/verify/check/verified_groups.js'
import type { Subject } from '../../src/verify/conformance.js'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the addon and the plugins, and opens the device. */
export async function openSimt(): Promise<Device> {
  const { folder } = await buildNative()
  process.env.HEDDLE_NATIVE ??= folder
  return openDevice('simt')
}

/** For source that runs only briefly, this compiles in two thirds of the time. */
export const optimise = '-Og'

export type OpenSubject = Subject & { readonly device: Device }

/** The device, and the IR of all kernels. @param needed keys of kernels to compile at once; others are compiled on demand */
export async function openSubject(needed: readonly string[] = []): Promise<OpenSubject> {
  const { device, library } = await openKernels('simt', { root, optimise })
  const { kernels: read, standard, layouts: lowered } = readSpecsOrThrow({ root, specs: ['specs'] })
  // Groups that `gen` checked against bodies are not checked again here.
  const planned = planAll(plans, graphs, read, lowered, await readVerifiedGroups(root), openMemo(root))
  const { kernels, templates } = linkKernels(planned, read, standard, graphs)
  const byOp = new Map([...kernels, ...templates].map((kernel) => [kernel.name, kernel]))
  // Compiles kernels that many tests need together.
  await library.ensure(needed)
  return { device, library, layouts, ops, kernels: byOp }
}
