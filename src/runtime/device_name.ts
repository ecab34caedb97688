/**
 * Names of devices: `js`, `simt`, `cuda`, and `cuda:1` for the second GPU. The only parser of such names, used for opening devices and for the
 * option `--device`.
 */
import { usageError } from '../errors.js'

export const deviceKinds = ['js', 'simt', 'cuda'] as const
export type DeviceKind = (typeof deviceKinds)[number]

/** A kind of device, or one GPU of several by its ordinal: `cuda:0` is `cuda`. */
export type DeviceName = DeviceKind | `cuda:${number}`

export interface NamedDevice {
  readonly kind: DeviceKind
  readonly ordinal: number
}

const names = 'js, simt, cuda or cuda:N with the number N of a GPU from 0'

/** Parses a device name into kind and ordinal. @throws usage `device.kind` */
export function parseDevice(name: unknown): NamedDevice {
  if (typeof name !== 'string') throw refuse(name, "write openDevice('simt', { root }): the name comes first, options second")
  const [, kind, ordinal] = /^(js|simt|cuda)(?::(\d{1,5}))?$/.exec(name) ?? []
  if (kind === 'cuda') return { kind, ordinal: Number(ordinal ?? 0) }
  if ((kind === 'js' || kind === 'simt') && ordinal === undefined) return { kind, ordinal: 0 }
  throw refuse(name, kind === undefined || kind === 'cuda' ? `devices are ${names}` : `${kind} has no number: write ${kind}`)
}

/** Validates and normalises a device name. @throws usage `device.kind` */
export function deviceName(text: string): DeviceName {
  const { kind, ordinal } = parseDevice(text)
  return ordinal === 0 ? kind : `cuda:${ordinal}`
}

/**
 * Parses the name of a device with compiled kernels, for callers that time or test them.
 * @throws usage `device.kind`, also for `js`
 */
export function compiledDevice(text: string): Exclude<DeviceName, 'js'> {
  const name = deviceName(text)
  if (name !== 'js') return name
  throw usageError('device.kind', 'expected a device with compiled kernels, got js, which evaluates their IR', {
    hint: 'write simt or cuda',
  })
}

const refuse = (given: unknown, hint: string) =>
  usageError('device.kind', `expected a device ${names}, got ${JSON.stringify(given) ?? typeof given}`, { hint })
