/**
 * Build cache: one folder per entry, with a key over all of its inputs. An entry appears by a rename of a finished folder, so a reader never sees a
 * partial one, even if the writer is killed. It holds a digest of each of its files, so that a damaged entry is built again. Several processes may
 * request an entry at once: one builds it, the others wait.
 */
import { chmod, mkdir, mkdtemp, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { writing } from '../writing.js'
import { listFiles, sha256 } from './hash.js'
import { locked } from './lock.js'

/** Digests of an entry's files; its presence marks a folder as an entry. */
export const digestsFile = 'digests.json'

/** Prefix of unfinished entries: `.making-<key>-<random>`. Their key is locked while they are written. */
export const makingPrefix = '.making-'

/** Path of an entry's lock: next to it, so that a shared cache is locked for all of its users. */
export const lockOf = (folder: string): string => join(dirname(folder), `${lockPrefix}${basename(folder)}`)

export const lockPrefix = '.lock-'

/** Temporary folder for building or removing an entry, on the same file system as the entry. */
const temporaryOf = (folder: string): Promise<string> => mkdtemp(join(dirname(folder), `${makingPrefix}${basename(folder)}-`))

export interface CacheOptions {
  readonly signal?: AbortSignal | undefined
  /** Called once if another process is building the entry. */
  readonly onWait?: (() => void) | undefined
}

export interface CacheEntry {
  readonly folder: string
  /** False if it already existed. */
  readonly made: boolean
}

/**
 * Returns the folder of `key` below `cache`, filled by `make` unless it exists and is intact.
 * @throws errors of `make`, environment `cache.full` or `cache.write`, the signal's reason; no partial entry remains then
 */
export async function cached(
  cache: string,
  key: string,
  make: (folder: string) => Promise<void>,
  { signal, onWait }: CacheOptions = {},
): Promise<CacheEntry> {
  const folder = join(cache, key)
  if (await isWhole(folder)) return { folder, made: false }
  await writing(cache, () => mkdir(cache, { recursive: true }))
  return locked(lockOf(folder), { signal, onWait }, async () => {
    // The previous holder of the lock may have built the entry.
    if (await isWhole(folder)) return { folder, made: false }
    const temporary = await writing(cache, () => temporaryOf(folder))
    try {
      await make(temporary)
      await writing(cache, () => seal(temporary))
      await writing(cache, () => publish(temporary, folder))
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
    return { folder, made: true }
  })
}

/** True if every file of an entry is unchanged since it was built. Marks the entry as used now. */
export async function isWhole(folder: string): Promise<boolean> {
  const digests = await readDigests(folder)
  if (digests === undefined || digests.length === 0) return false
  const same = await Promise.all(
    digests.map(async ([name, digest]) => {
      const content = await readFile(join(folder, name)).catch(() => undefined)
      return content !== undefined && sha256(content) === digest
    }),
  )
  if (!same.every(Boolean)) return false
  const now = new Date()
  // A read-only cache works as well.
  await utimes(folder, now, now).catch(() => undefined)
  return true
}

async function readDigests(folder: string): Promise<readonly (readonly [string, unknown])[] | undefined> {
  try {
    const parsed: unknown = JSON.parse(await readFile(join(folder, digestsFile), 'utf8'))
    return typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : undefined
  } catch {
    return undefined
  }
}

/** Writes the digests of a finished folder's files. */
async function seal(folder: string): Promise<void> {
  const names = await listFiles(folder)
  const digests = await Promise.all(names.map(async (name) => [name, sha256(await readFile(join(folder, name)))]))
  // A temporary folder is private to its owner; a cache may be shared.
  await chmod(folder, 0o755)
  await writeFile(join(folder, digestsFile), `${JSON.stringify(Object.fromEntries(digests), null, 2)}\n`)
}

/** Moves a finished folder to its final path, and replaces a damaged entry there. */
async function publish(temporary: string, folder: string): Promise<void> {
  const isOccupied = await rename(temporary, folder).then(
    () => false,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST' || error.code === 'ENOTDIR') return true
      throw error
    },
  )
  if (!isOccupied) return
  await removeEntry(folder)
  await rename(temporary, folder)
}

/** Removes an entry atomically: no reader sees a partial one. */
export async function removeEntry(folder: string): Promise<void> {
  const away = await temporaryOf(folder)
  try {
    await rename(folder, join(away, 'removed')).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  } finally {
    await rm(away, { recursive: true, force: true })
  }
}
