/** Opens a device for the kernels of a project. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { HeddleError, usageError } from '../../errors.js'
import { type DeviceKind, type DeviceName, openDevice as openNative } from '../device.js'
import { parseDevice } from '../device_name.js'
import { jsByDefault, whyJs } from '../js/default.js'
import { openNamed, prepareNative } from '../open.js'
import { DeviceCore } from './core.js'
import { deviceOf } from './device.js'
import type { Device, OpenOptions, SkippedDevice } from './device_types.js'
import { checkOptions } from './options.js'
import { findRoot, projectIn } from './project.js'

/** Kinds of devices that run compiled kernels, in order of preference. */
const preferred: readonly DeviceKind[] = ['cuda', 'simt']

/**
 * Opens a device: the GPU (`cuda`, or `cuda:1` for the second of several), the CPU device (`simt`), or `js`, which runs kernels as JavaScript.
 * With `on` it opens a device of another machine. Without a name it opens the GPU if there is one, else the CPU device; on a machine without a C++ compiler `js`. A missing addon is built first.
 * @throws environment `remote.*` with `on`, `device.unavailable`, `device.plugin`, `toolchain.*` if the machine lacks a prerequisite; usage `device.kind`,
 * `device.root`, `remote.host`, `remote.device`
 */
export async function openDevice(name?: DeviceName, options: OpenOptions = {}): Promise<Device> {
  if (name !== undefined) parseDevice(name)
  checkOptions('device', 'openDevice', ['root', 'on', 'signal', 'onProgress', 'onNotice'], options)
  options.signal?.throwIfAborted()
  const root = options.root === undefined ? findRoot() : resolve(options.root)
  if (!existsSync(root)) throw usageError('device.root', `there is no folder ${root}`)
  const opening = { ...options, root }
  if (options.on !== undefined) {
    const there = await openNamed(name, { ...opening, who: 'openDevice' })
    return deviceOf(there, root, [], new DeviceCore(there, projectIn(opening)))
  }
  const chosen = name ?? (await jsByDefault(opening))
  await prepareNative(chosen, opening)
  const open = (wanted: DeviceName, skipped: readonly SkippedDevice[]): Device => {
    const native = openNative(wanted)
    return deviceOf(native, root, skipped, new DeviceCore(native, projectIn(opening)))
  }
  if (chosen !== undefined) return open(chosen, name === undefined ? [{ kind: 'simt', reason: whyJs }] : [])
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

/** True if a device is absent or its plugin is not built; a device that exists but fails is not skipped. */
const isAbsent = (error: unknown): error is HeddleError =>
  error instanceof HeddleError && ['device.unavailable', 'device.plugin'].includes(error.code)
