/** Opening a device for the kernels of a project. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HeddleError, usageError } from '../../errors.js'
import { type DeviceKind, deviceKinds, openDevice as openNative } from '../device.js'
import { prepareNative } from '../open.js'
import { checkOptions } from './call.js'
import { DeviceCore } from './core.js'
import { deviceOf } from './device.js'
import type { Device, OpenOptions, SkippedDevice } from './device_types.js'
import { nameHint } from './names.js'
import { findRoot, projectIn } from './project.js'

/** The GPU first. */
const preferred: readonly DeviceKind[] = deviceKinds.toReversed()

/**
 * Opens a device: the GPU (`cuda`), the CPU device (`simt`), or where no kind is given the GPU if there is one and else the CPU device.
 * The addon is built
 * first where it is missing.
 * @throws environment `device.unavailable`, `device.plugin`, `toolchain.*` for what the machine lacks; usage `device.kind`, `device.root`
 */
export async function openDevice(kind?: DeviceKind, options: OpenOptions = {}): Promise<Device> {
  checkOptions('device', 'openDevice', ['root', 'signal', 'onProgress', 'onNotice'], options)
  options.signal?.throwIfAborted()
  const root = options.root === undefined ? findRoot() : resolve(options.root)
  if (!existsSync(root)) throw usageError('device.root', `there is no folder ${root}`)
  if (kind !== undefined && !deviceKinds.includes(kind)) {
    throw usageError('device.kind', `there is no device ${JSON.stringify(kind)}`, {
      hint: nameHint('devices', deviceKinds, String(kind)),
    })
  }
  const opening = { ...options, root }
  await prepareNative(kind, opening)
  const open = (wanted: DeviceKind, skipped: readonly SkippedDevice[]): Device => {
    const native = openNative(wanted)
    return deviceOf(native, root, skipped, new DeviceCore(native, projectIn(opening)))
  }
  if (kind !== undefined) return open(kind, [])
  const skipped: SkippedDevice[] = []
  for (const tried of preferred) {
    try {
      return open(tried, skipped)
    } catch (error) {
      if (tried === preferred.at(-1) || !isAbsent(error)) throw error
      skipped.push({ kind: tried, reason: error.message })
    }
  }
  throw new Error('internal: there is no kind of device')
}

/** Whether the machine has no device of a kind; one that is there and broken is not passed over. */
const isAbsent = (error: unknown): error is HeddleError =>
  error instanceof HeddleError && ['device.unavailable', 'device.plugin'].includes(error.code)
