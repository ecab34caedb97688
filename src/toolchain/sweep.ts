/**
 * Evicts cache entries: first the unfinished ones of killed builds, then the least recently used, until the rest is within the limit. Runs after
 * a build that has added an entry, at most once an hour: there are thousands of entries to check, and entries used within the hour stay in any
 * case.
 */
import { readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { digestsFile, lockOf, lockPrefix, makingPrefix, removeEntry } from './cache.js'
import { isLocked } from './lock.js'

/** Default size limit: all kernels of some twenty versions for one architecture. */
const defaultLimitMebibytes = 4096

/** Age below which another process may be about to link an entry. */
const inUseMs = 3_600_000

export interface Swept {
  /** Bytes of the remaining entries. */
  readonly bytes: number
  /** Removed paths, in order. */
  readonly removed: readonly string[]
}

/** Size limit in bytes: $HEDDLE_CACHE_LIMIT in MiB, or 4096. @throws usage `cache.limit` for anything but a positive number */
export function cacheLimit(text: string | undefined = process.env.HEDDLE_CACHE_LIMIT): number {
  if (text === undefined || text === '') return defaultLimitMebibytes * 2 ** 20
  const mebibytes = Number(text)
  if (Number.isFinite(mebibytes) && mebibytes > 0) return mebibytes * 2 ** 20
  throw usageError('cache.limit', `HEDDLE_CACHE_LIMIT: expected a positive number of MiB, got ${JSON.stringify(text)}`, {
    hint: 'set it to a number of MiB such as 4096',
  })
}

/** True if a cache has not been swept for an hour. Marks it as swept now. */
export async function isSweepDue(cache: string, now: number = Date.now()): Promise<boolean> {
  const stamp = join(cache, 'swept')
  // Whole milliseconds, like the clock: a file of the current millisecond is not in the future.
  const last = Math.floor((await stat(stamp).catch(() => undefined))?.mtimeMs ?? 0)
  // A clock that was set back does not prevent sweeping.
  if (last <= now && now - last < inUseMs) return false
  // A read-only cache is not swept.
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

/** @param folders of entries; a missing one is empty. Never throws for entries that other processes remove meanwhile. */
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
        // A lock that has not been held for long; the holder of a lock keeps it fresh.
        const lock = await stat(path).catch(() => undefined)
        if (lock !== undefined && now - lock.mtimeMs > inUseMs) await rmdir(path).catch(() => undefined)
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

/** Returns `<key>` of `.making-<key>-<random>`. */
const keyOf = (name: string): string => name.slice(makingPrefix.length, name.lastIndexOf('-'))

async function weigh(path: string): Promise<Aged | undefined> {
  try {
    const { mtimeMs } = await stat(path)
    const names = await readdir(path)
    // The folder of a cache may hold other files as well.
    if (!names.includes(digestsFile)) return undefined
    const sizes = await Promise.all(names.map(async (name) => (await stat(join(path, name))).size))
    return { path, bytes: sizes.reduce((sum, size) => sum + size, 0), used: mtimeMs }
  } catch {
    return undefined
  }
}
