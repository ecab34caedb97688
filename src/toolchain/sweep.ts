/**
 * Keeps the cache small: what killed builds left unfinished goes first, then entries that were not used for longest, until the rest is
 * within the limit. Runs after a build that has made something, once an hour: there are thousands of entries to look at, and what was
 * used within the hour stays in any case.
 */
import { readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { digestsFile, lockOf, lockPrefix, makingPrefix, removeEntry } from './cache.js'
import { isLocked } from './lock.js'

/** Bytes a cache may take: all kernels of some twenty versions for one architecture. */
const defaultLimitMebibytes = 4096

/** What was used as lately as this may be what another process is about to link. */
const inUseMs = 3_600_000

export interface Swept {
  /** Bytes of the entries that are left. */
  readonly bytes: number
  /** Paths that were removed, in the order in which they went. */
  readonly removed: readonly string[]
}

/** The limit in bytes: $HEDDLE_CACHE_LIMIT in MiB, or 4096. @throws usage `cache.limit` for anything but a positive number */
export function cacheLimit(text: string | undefined = process.env.HEDDLE_CACHE_LIMIT): number {
  if (text === undefined || text === '') return defaultLimitMebibytes * 2 ** 20
  const mebibytes = Number(text)
  if (Number.isFinite(mebibytes) && mebibytes > 0) return mebibytes * 2 ** 20
  throw usageError('cache.limit', `HEDDLE_CACHE_LIMIT is ${JSON.stringify(text)}`, {
    hint: 'a number of MiB more than 0, such as 4096',
  })
}

/** True if nobody has swept a cache for an hour. Who asks is taken to do so now. */
export async function isSweepDue(cache: string, now: number = Date.now()): Promise<boolean> {
  const stamp = join(cache, 'swept')
  // Whole milliseconds, as the clock here counts: within one, a file is not younger than now.
  const last = Math.floor((await stat(stamp).catch(() => undefined))?.mtimeMs ?? 0)
  // A clock that was set back does not stop sweeping.
  if (last <= now && now - last < inUseMs) return false
  // A cache that cannot be written to is not swept either.
  return writeFile(stamp, '').then(
    () => true,
    () => false,
  )
}

interface Aged {
  readonly path: string
  readonly bytes: number
  readonly used: number
}

/** @param folders that hold entries; one that is missing is empty. Never throws for what others remove meanwhile. */
export async function sweep(folders: readonly string[], limit: number, now: number = Date.now()): Promise<Swept> {
  const removed: string[] = []
  const entries: Aged[] = []
  for (const folder of folders) {
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name)
      if (name.startsWith(makingPrefix)) {
        if (await isLocked(lockOf(join(folder, keyOf(name))))) continue
        await rm(path, { recursive: true, force: true }).catch(() => undefined)
        removed.push(path)
      } else if (name.startsWith(lockPrefix)) {
        // A lock that nobody has held for long; one that is held is kept fresh.
        const held = await stat(path).catch(() => undefined)
        if (held !== undefined && now - held.mtimeMs > inUseMs) await rmdir(path).catch(() => undefined)
      } else if (!name.startsWith('.')) {
        const entry = await weigh(path)
        if (entry !== undefined) entries.push(entry)
      }
    }
  }
  let bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  for (const entry of entries.sort((a, b) => a.used - b.used)) {
    if (bytes <= limit || now - entry.used < inUseMs) break
    await removeEntry(entry.path).catch(() => undefined)
    removed.push(entry.path)
    bytes -= entry.bytes
  }
  return { bytes, removed }
}

/** `.making-<key>-<random>` is of `<key>`. */
const keyOf = (name: string): string => name.slice(makingPrefix.length, name.lastIndexOf('-'))

async function weigh(path: string): Promise<Aged | undefined> {
  try {
    const { mtimeMs } = await stat(path)
    const names = await readdir(path)
    // A cache may be a folder that holds other things as well.
    if (!names.includes(digestsFile)) return undefined
    const sizes = await Promise.all(names.map(async (name) => (await stat(join(path, name))).size))
    return { path, bytes: sizes.reduce((sum, size) => sum + size, 0), used: mtimeMs }
  } catch {
    return undefined
  }
}
