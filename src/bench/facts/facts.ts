/**
 * What a device can do at most. It is asked for what it knows of itself, and measured once: the measurements of each device are kept in
 * the user's cache, and made again on request or when its driver or matmul library change. Nothing is looked up by a device's name.
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

const kept = z.strictObject({
  version: z.literal(1),
  device: z.string(),
  bandwidth: rate,
  peak: z.strictObject({ f32: rate.optional(), f16: rate.optional(), bf16: rate.optional(), i8: rate.optional() }),
})

export interface FactsOptions {
  /** `kept` takes a measurement that was made before, and makes one where there is none; `never` makes none; `again` makes a new one. */
  readonly probe?: 'kept' | 'never' | 'again' | undefined
  readonly folder?: string | undefined
  readonly onStage?: ((what: string) => void) | undefined
}

/** What tells one device from another, and a measurement of it from one with other software. */
function identity({ kind, id, name, driverVersion, matmulVersion, multiprocessors }: NativeDeviceInfo): string {
  const what = id ?? `${kind === 'simt' ? (cpus()[0]?.model ?? '') : name} ${multiprocessors}`
  return `${kind} ${what} ${driverVersion} ${matmulVersion}`
}

/** The file that keeps the measurements of a device. */
export function factsFile(info: NativeDeviceInfo, folder: string = join(cacheFolder(), 'devices')): string {
  return join(folder, `${info.kind}-${createHash('sha256').update(identity(info)).digest('hex').slice(0, 16)}.json`)
}

/** What was measured of a device before. A file that is damaged, or of another version, is none. */
async function readKept(path: string): Promise<Measured | undefined> {
  try {
    const { bandwidth, peak } = kept.parse(JSON.parse(await readFile(path, 'utf8')))
    return { bandwidth, peak: Object.fromEntries(Object.entries(peak).filter(([, value]) => value !== undefined)) }
  } catch {
    return undefined
  }
}

/**
 * The ceilings of an open device, by measurement as far as there is one, else by its attributes; undefined where neither says how fast
 * it moves bytes. A cache that cannot be written to costs a measurement each time.
 */
export async function deviceCeilings(device: NativeDevice, options: FactsOptions = {}): Promise<Ceilings | undefined> {
  const info = device.info()
  const path = factsFile(info, options.folder)
  const wanted = options.probe ?? 'kept'
  const known = wanted === 'again' ? undefined : await readKept(path)
  const measured = known ?? (wanted === 'never' ? undefined : await probe(device, options.onStage))
  if (measured !== undefined && known === undefined) {
    const text = JSON.stringify({ version: 1, device: info.name, ...measured }, undefined, 2)
    await writeWhole(path, `${text}\n`).catch(() => undefined)
  }
  return ceilingsOf(info, measured)
}

/** The ceilings that attributes and measurements give together: a measured number counts more than one of an attribute. */
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
