/**
 * The agent: runs on the machine that has the device, started by a shell with frames on its standard streams. It opens one device, does what it is
 * asked, and ends with its input: a cut link leaves no process. Arguments: the cache folder, the folder of the addon and the device plugins.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, hostname, platform, userInfo } from 'node:os'
import { join } from 'node:path'
import { constants, createBrotliCompress, createBrotliDecompress } from 'node:zlib'
import type { NativeAddon, NativeDevice, NativeDeviceInfo } from '../native.js'
import { deviceHandler } from './agent_device.js'
import { holderOf, takeLock } from './agent_lock.js'
import { requestQueue } from './agent_queue.js'
import { openStore, type Store, sweep } from './agent_store.js'
import { encodeFrame, frameReader } from './frames.js'
import { type AboutDevice, type AboutMachine, compression, type Opened, type Reply, type Request } from './protocol.js'

const [cache = '', native = ''] = process.argv.slice(2)

// Work in native threads must not outlive the link, so that nothing waits for it.
const end = (): void => void process.kill(process.pid, 'SIGKILL')
process.stdin.on('end', end).on('close', end).on('error', end)
process.stdout.on('error', end)

/** Opens a device of this machine. @throws errors of the addon */
function openNative(kind: 'simt' | 'cuda', ordinal: number): NativeDevice {
  const plugin = join(native, `libheddle_${kind}.so`)
  if (!existsSync(plugin)) {
    const reason = `the ${kind} device plugin was not sent: it is not built on the machine that sends`
    throw Object.assign(new Error(reason), { code: 'UNAVAILABLE' })
  }
  const addon = createRequire(import.meta.url)(join(native, 'heddle.node')) as NativeAddon
  return addon.openDevice(plugin, ordinal)
}

/** Name of the lock of a device: a GPU is one for all users of the machine, CPU devices exclude each other per cache. */
const lockOf = ({ kind, id }: NativeDeviceInfo): string =>
  createHash('sha256')
    .update(kind === 'cuda' ? (id ?? 'cuda') : `simt ${cache}`)
    .digest('hex')
    .slice(0, 24)

/** Attributes, with an identity for the CPU device, whose measurements belong to this machine. */
function infoOf(device: NativeDevice): NativeDeviceInfo {
  const info = device.info()
  return info.id === undefined ? { ...info, id: `${hostname()} ${cpus()[0]?.model ?? 'cpu'} ${info.multiprocessors}` } : info
}

async function aboutDevice(kind: 'simt' | 'cuda'): Promise<AboutDevice> {
  try {
    const device = openNative(kind, 0)
    try {
      const info = infoOf(device)
      return { kind, info, holder: await holderOf(lockOf(info)) }
    } finally {
      device.close()
    }
  } catch (error) {
    return { kind, reason: error instanceof Error ? error.message : String(error) }
  }
}

function driverVersion(): string | undefined {
  const path = '/proc/driver/nvidia/version'
  return existsSync(path) ? /Kernel Module[^\d]*([\d.]+)/.exec(readFileSync(path, 'utf8'))?.[1] : undefined
}

async function about(): Promise<AboutMachine> {
  const report = process.report.getReport() as { readonly header: { readonly glibcVersionRuntime?: string } }
  return {
    host: hostname(),
    platform: `${platform()}-${arch()}`,
    glibc: report.header.glibcVersionRuntime ?? 'unknown',
    node: process.versions.node,
    driver: driverVersion(),
    cache,
    devices: [await aboutDevice('cuda'), await aboutDevice('simt')],
  }
}

/** State of the GPU, as far as the driver's tool reports it: times depend on it. */
function notesOf({ kind, id }: NativeDeviceInfo): string[] {
  if (kind !== 'cuda') return []
  const ask = (...args: string[]): string => {
    const selected = id === undefined ? [] : ['-i', id]
    return execFileSync('nvidia-smi', [...selected, ...args], {
      encoding: 'utf8',
      timeout: 5000,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  }
  try {
    const state = ask(
      '--query-gpu=driver_version,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu',
      '--format=csv,noheader',
    )
    const others = ask('--query-compute-apps=pid', '--format=csv,noheader')
      .split('\n')
      .filter((line) => line.trim() !== '' && line.trim() !== String(process.pid))
    const [driver, clock, most, power, limit, heat] = state.trim().split(/,\s*/)
    const notes = [`driver ${driver}, clock ${clock} of ${most}, power ${power} of ${limit}, ${heat} C`]
    return others.length === 0 ? notes : [...notes, `other processes on the GPU: ${others.length}; they change its times`]
  } catch {
    return ['its clocks, power and other processes are unknown: nvidia-smi does not answer']
  }
}

let handle: ReturnType<typeof deviceHandler> | undefined
let store: Store | undefined

async function open({ kind, ordinal, who }: Extract<Request, { readonly op: 'open' }>): Promise<Opened> {
  const device = openNative(kind, ordinal)
  const info = infoOf(device)
  const since = new Date().toISOString().slice(0, 19).replace('T', ' ')
  const holder = await takeLock(lockOf(info), `${userInfo().username}: ${who}, process ${process.pid} since ${since} UTC`)
  if (holder !== undefined) throw Object.assign(new Error('the device is taken'), { holder })
  const folder = join(cache, 'sent')
  store = openStore(folder)
  handle = deviceHandler(device, store)
  for (const each of [cache, folder]) sweep(each)
  return { info, notes: notesOf(info), hasStored: store.hasFiles() }
}

const packed = createBrotliCompress(compression)
packed.pipe(process.stdout)

function send(reply: Reply): void {
  packed.write(encodeFrame(reply))
  packed.flush(constants.BROTLI_OPERATION_FLUSH)
}

function refuse(id: number, error: unknown): void {
  const { message, code, holder } = error as { message?: string; code?: string; holder?: string }
  send({ id, error: { message: message ?? String(error), ...(code && { code }), ...(holder && { holder }) } })
}

const receive = requestQueue({
  store: () => store,
  ask: (id, needs) => send({ id, needs }),
  handle({ id, request }, given) {
    const answer = async (): Promise<unknown> => {
      if (request.op === 'about') return about()
      if (request.op === 'open') return open(request)
      if (handle === undefined || request.op === 'give') throw new Error('no device is open')
      return handle(request, given)
    }
    // A reply may be longer than a frame.
    answer()
      .then((value) => send({ id, value }))
      .catch((error: unknown) => refuse(id, error))
  },
})
// A cut or damaged stream ends the process as its end does.
const unpacked = createBrotliDecompress().on(
  'data',
  frameReader((frame) => receive(frame as Parameters<typeof receive>[0])),
)
process.stdin.pipe(unpacked.on('error', end))
