/** A device whose kernels are the bodies of the shipped ops, opened as users open one, so that calls are tested where nothing is compiled. */
import { DeviceCore } from '../../../src/runtime/api/core.js'
import { type Device, deviceOf } from '../../../src/runtime/api/device.js'
import type { KernelSource } from '../../../src/runtime/library.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../reference_device.js'

const manifest = referenceManifest()

export interface Opened {
  readonly device: Device
  readonly log: { readonly live: number; readonly runs: number }
  /** Keys that were asked for, in order. */
  readonly asked: string[]
}

/** @param ensure what a kernel waits for before it can be launched */
export function openReference(ensure: (keys: readonly string[]) => Promise<void> = async () => undefined): Opened {
  const { device: native, log } = referenceDevice(manifest)
  const library = referenceLibrary(manifest)
  const asked: string[] = []
  const kernels: KernelSource = {
    target: 'simt',
    ensure(keys) {
      asked.push(...keys)
      return ensure([...keys])
    },
    of: (key) => library.of(key),
  }
  const withKind = { ...native, kind: 'simt' as const }
  const core = new DeviceCore(withKind, async () => ({ manifest, kernels }))
  return { device: deviceOf(withKind, '/nowhere', [], core), log, asked }
}
