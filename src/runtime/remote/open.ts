/** Opens a device on another machine. Nothing has to be installed there: what is needed is sent once, into the user's cache. */
import { environmentError, usageError } from '../../errors.js'
import { ensureNative, findNvcc } from '../../toolchain/index.js'
import { type Device, wrapDevice } from '../device.js'
import { type DeviceName, parseDevice } from '../device_name.js'
import { shellWord } from './command.js'
import { remoteDevice } from './device.js'
import { deviceTaken } from './failures.js'
import { connect, type Link } from './link.js'
import type { AboutMachine, Opened } from './protocol.js'
import type { LinkOptions } from './start.js'

export interface RemoteOptions extends LinkOptions {
  /** A name of ~/.ssh/config, or a command prefix. */
  readonly on: string
  /** Purpose of the device, as others who wait for it read it. */
  readonly who?: string | undefined
}

/** Builds what is sent, with the CUDA plugin if there is an nvcc, and connects. */
async function connected({ on, signal, onNotice }: RemoteOptions, kind: string | undefined): Promise<Link> {
  if (!process.env.HEDDLE_NATIVE) {
    const cuda = kind !== 'simt' && (await findNvcc()) !== undefined
    await ensureNative({ signal, cuda, onStart: onNotice })
  }
  return connect(on, { signal, onNotice })
}

/** Describes a machine and its devices. @throws usage `remote.host`; environment `remote.*` */
export async function aboutMachine(options: RemoteOptions): Promise<AboutMachine> {
  const link = await connected(options, undefined)
  try {
    return (await link.ask({ op: 'about' })) as AboutMachine
  } finally {
    link.close()
  }
}

/**
 * Opens a device on another machine; its process there ends when the device is closed, or the link.
 * @param name by default the GPU if the machine has one, else its CPU device
 * @throws usage `remote.host`, `remote.device`, `device.kind`; environment `remote.*`, and errors of opening a device
 */
export async function openRemote(name: DeviceName | undefined, options: RemoteOptions): Promise<Device> {
  const named = name === undefined ? undefined : parseDevice(name)
  if (named?.kind === 'js')
    throw usageError('remote.device', 'the device js runs in this process, not on another machine', {
      hint: 'leave --on out, or name simt or cuda',
    })
  const link = await connected(options, named?.kind)
  try {
    const { kind, ordinal } = named ?? { kind: bestOf((await link.ask({ op: 'about' })) as AboutMachine), ordinal: 0 }
    if (kind === 'js') throw new Error('internal: js is no device of another machine')
    const who = options.who ?? 'heddle'
    const opened = await openOn(link, { op: 'open', kind, ordinal, who }, name ?? kind)
    for (const note of opened.notes) options.onNotice?.(`${options.on}: ${note}`)
    const device = wrapDevice(remoteDevice(link, opened))
    return {
      kind,
      ...device,
      close() {
        const { sent, received } = link.bytes()
        if (!link.isClosed()) options.onNotice?.(`${options.on}: sent ${sizeText(sent)}, received ${sizeText(received)}`)
        device.close()
      },
    }
  } catch (error) {
    link.close()
    throw error
  }
}

/** `182 kB`: enough to see if parts and tensors were sent again. */
const sizeText = (bytes: number): string => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`)

const bestOf = ({ devices }: AboutMachine): 'simt' | 'cuda' =>
  devices.some((device) => device.kind === 'cuda' && 'info' in device) ? 'cuda' : 'simt'

/** The device that opens by default on another machine. @throws errors of `aboutMachine` */
export const bestDeviceOn = async (options: RemoteOptions): Promise<'simt' | 'cuda'> => bestOf(await aboutMachine(options))

async function openOn(link: Link, request: Parameters<Link['ask']>[0], device: string): Promise<Opened> {
  try {
    return (await link.ask(request)) as Opened
  } catch (error) {
    if (!(error instanceof Error)) throw error
    if ('holder' in error) throw deviceTaken(link.on, device, String(error.holder))
    if ('code' in error && error.code === 'UNAVAILABLE')
      throw environmentError('device.unavailable', `${link.on} has no device ${device}: ${error.message}`, {
        hint: `heddle doctor --on ${shellWord(link.on)} lists its devices`,
      })
    throw error
  }
}
