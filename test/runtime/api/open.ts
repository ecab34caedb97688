/** A device whose kernels are the bodies of the shipped ops, opened as by a user, so that calls are tested without compiling. */
import { DeviceCore } from '../../../src/runtime/api/core.js'
import { deviceOf } from '../../../src/runtime/api/device.js'
import type { Device } from '../../../src/runtime/api/index.js'
import type { KernelSource } from '../../../src/runtime/library.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../reference_device.js'

const manifest = referenceManifest()

export interface Opened {
  readonly device: Device
  readonly log: { readonly live: number; readonly runs: number }
  /** Requested keys, in order. */
  readonly asked: string[]
}

/**
 * @param ensure awaited before a kernel is launched @param isShipped true if a kernel belongs to the package; in this repository all belong to the
 * project
 */
export function openReference(
  ensure: (keys: readonly string[]) => Promise<void> = async () => undefined,
  isShipped: (key: string) => boolean = () => false,
): Opened {
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
  const core = new DeviceCore(withKind, async () => ({ manifest, kernels, isShipped }))
  return { device: deviceOf(withKind, '/nowhere', [], core), log, asked }
}
