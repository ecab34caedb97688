/**
 * Names of devices: `simt`, `cuda`, and `cuda:1` for the second GPU. The only parser of such names, used for opening devices and for the
 * option `--device`.
 */
import { usageError } from '../errors.js'

export const deviceKinds = ['simt', 'cuda'] as const
export type DeviceKind = (typeof deviceKinds)[number]

/** A kind of device, or one GPU of several by its ordinal: `cuda:0` is `cuda`. */
export type DeviceName = DeviceKind | `cuda:${number}`

export interface NamedDevice {
  readonly kind: DeviceKind
  readonly ordinal: number
}

const names = 'simt, cuda or cuda:N with the number N of a GPU from 0'

/** Parses a device name into kind and ordinal. @throws usage `device.kind` */
export function parseDevice(name: unknown): NamedDevice {
  if (typeof name !== 'string') throw refuse(name, "write openDevice('simt', { root }): the name comes first, options second")
  const [, kind, ordinal] = /^(simt|cuda)(?::(\d{1,5}))?$/.exec(name) ?? []
  if (kind === 'cuda') return { kind, ordinal: Number(ordinal ?? 0) }
  if (kind === 'simt' && ordinal === undefined) return { kind, ordinal: 0 }
  throw refuse(name, name.startsWith('simt') ? 'the CPU device has no number: write simt' : `devices are ${names}`)
}

/** Validates and normalises a device name. @throws usage `device.kind` */
export function deviceName(text: string): DeviceName {
  const { kind, ordinal } = parseDevice(text)
  return ordinal === 0 ? kind : `cuda:${ordinal}`
}

const refuse = (given: unknown, hint: string) =>
  usageError('device.kind', `expected a device ${names}, got ${JSON.stringify(given) ?? typeof given}`, { hint })
