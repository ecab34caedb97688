/**
 * Upper limits of a device, from its attributes and one measurement. Measurements of each device are cached in the user's cache, and
 * repeated on request or when its driver or matmul library change. Nothing is looked up by a device's name.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { writeWhole } from '../../output.js'
import type { NativeDevice, NativeDeviceInfo } from '../../runtime/native.js'
import { cacheFolder } from '../../toolchain/index.js'
import type { Ceilings } from '../floor.js'
import { peaksByAttributes } from './peaks.js'
import { type Measured, probe } from './probe.js'

const rate = z.number().positive()

const cachedSchema = z.strictObject({
  version: z.literal(1),
  device: z.string(),
  bandwidth: rate,
  peak: z.strictObject({ f32: rate.optional(), f16: rate.optional(), bf16: rate.optional(), i8: rate.optional() }),
})

export interface FactsOptions {
  /** `kept` uses a cached measurement and measures if there is none; `never` does not measure; `again` always measures. */
  readonly probe?: 'kept' | 'never' | 'again' | undefined
  readonly folder?: string | undefined
  readonly onStage?: ((what: string) => void) | undefined
}

/** Identity of a device and its software, which a measurement depends on. */
function identity({ kind, id, name, driverVersion, matmulVersion, multiprocessors }: NativeDeviceInfo): string {
  const what = id ?? `${kind === 'simt' ? (cpus()[0]?.model ?? '') : name} ${multiprocessors}`
  return `${kind} ${what} ${driverVersion} ${matmulVersion}`
}

/** File with the measurements of a device. */
export function factsFile(info: NativeDeviceInfo, folder: string = join(cacheFolder(), 'devices')): string {
  return join(folder, `${info.kind}-${createHash('sha256').update(identity(info)).digest('hex').slice(0, 16)}.json`)
}

/** Cached measurement of a device; undefined for a damaged file, or one of another version. */
async function readCached(path: string): Promise<Measured | undefined> {
  try {
    const { bandwidth, peak } = cachedSchema.parse(JSON.parse(await readFile(path, 'utf8')))
    return { bandwidth, peak: Object.fromEntries(Object.entries(peak).filter(([, value]) => value !== undefined)) }
  } catch {
    return undefined
  }
}

/**
 * Ceilings of an open device, measured if possible, else from its attributes; undefined if neither gives a bandwidth. With a cache
 * that cannot be written, every call measures.
 */
export async function deviceCeilings(device: NativeDevice, options: FactsOptions = {}): Promise<Ceilings | undefined> {
  const info = device.info()
  const path = factsFile(info, options.folder)
  const wanted = options.probe ?? 'kept'
  const known = wanted === 'again' ? undefined : await readCached(path)
  const measured = known ?? (wanted === 'never' ? undefined : await probe(device, options.onStage))
  if (measured !== undefined && known === undefined) {
    const text = JSON.stringify({ version: 1, device: info.name, ...measured }, undefined, 2)
    await writeWhole(path, `${text}\n`).catch(() => undefined)
  }
  return ceilingsOf(info, measured)
}

/** Combines attributes and measurements into ceilings. A measured number overrides one from attributes. */
export function ceilingsOf(info: NativeDeviceInfo, measured?: Measured): Ceilings | undefined {
  const bandwidth = measured?.bandwidth ?? info.bandwidth
  if (bandwidth === undefined) return undefined
  const stated = peaksByAttributes(info)
  return {
    bandwidth,
    peak: { ...stated, ...measured?.peak },
    ...(info.cacheBytes === undefined ? {} : { cacheBytes: info.cacheBytes }),
    measured: measured !== undefined,
    stated: { peak: stated, ...(info.bandwidth === undefined ? {} : { bandwidth: info.bandwidth }) },
  }
}
