/**
 * On-disk cache of compiler results: lowered ops, kernels derived by plans, sources of kernels. The key of a result is a digest of
 * all its inputs and of the compiler itself, so no invalidation is needed: other inputs have another key. An entry is one file with a digest
 * of its content and name. A damaged entry, or one of another key, counts as missing and is computed again.
 *
 * Stored in the user's cache, in one folder per project and one shared folder. Results are executed and compiled, so none is read from the
 * project's own folder, whose author may be anybody. Entries may be deleted at any time. `HEDDLE_KEPT=off` disables the cache.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { cacheFolder } from './cache_folder.js'
import { compilerDigest } from './compiler_digest.js'
import { sealed, unsealed } from './sealed.js'

export interface Memo {
  /**
   * Result of `make`: plain data, computed now or by an earlier run.
   * @param kind of result, part of its key
   * @param parts texts that describe all inputs of `make`, except the compiler
   */
  of<T>(kind: string, parts: readonly string[], make: () => T): T
  /** Slot for data that can validate itself: returns the latest written value. */
  slot<T>(kind: string, parts: readonly string[]): Slot<T>
}

export interface Slot<T> {
  readonly read: () => T | undefined
  readonly write: (value: T) => void
}

/** Cache that stores nothing. */
export const noMemo: Memo = {
  of: (_kind, _parts, make) => make(),
  slot: () => ({ read: () => undefined, write: () => undefined }),
}

/** Size limit of a project's entries in bytes: about ten times those of heddle's own specs. */
const most = 256 * 2 ** 20

/** Milliseconds between two scans of all entries, of which there are thousands. */
const seldom = 3_600_000

const sha256 = (content: string): Buffer => createHash('sha256').update(content).digest()

/** True if no stored result may be used. */
export const isOff = (): boolean => process.env.HEDDLE_KEPT === 'off'

interface Limits {
  readonly limit?: number
  readonly every?: number
  /** Project of the results, which are removed after it is deleted. */
  readonly project?: string
}

/** Folder of a project's results. @throws environment `cache.foreign` */
export const memoFolder = (root: string): string =>
  join(cacheFolder(), 'projects', sha256(resolve(root)).toString('hex').slice(0, 16))

/**
 * Cache of a project's results. A cache that cannot be written stores nothing.
 * @param limits size limit in bytes (least recently used entries are removed first), and milliseconds between two scans
 */
export const openMemo = (root: string, limits: Limits = {}): Memo =>
  memoIn(memoFolder(root), { ...limits, project: resolve(root) })

/** Cache in a folder, for results that do not belong to one project. */
export function memoIn(folder: string, { limit = most, every = seldom, project }: Limits = {}): Memo {
  if (isOff()) return noMemo
  let swept = false
  const fileOf = (kind: string, parts: readonly string[]): string =>
    join(folder, sha256(JSON.stringify([compilerDigest(), process.version, kind, ...parts])).toString('base64url'))
  const store = (file: string, value: unknown): void => {
    if (!swept && isDue(folder, every)) {
      sweepMemo(folder, limit)
      if (project !== undefined) forgetGone(folder, project)
    }
    swept = true
    write(folder, file, value)
  }
  return {
    of: <T>(kind: string, parts: readonly string[], make: () => T): T => {
      const file = fileOf(kind, parts)
      const found = read(file)
      if (found !== undefined) return found.value as T
      const value = make()
      store(file, value)
      return value
    },
    slot: <T>(kind: string, parts: readonly string[]): Slot<T> => {
      const file = fileOf(kind, parts)
      return { read: () => read(file)?.value as T | undefined, write: (value) => store(file, value) }
    },
  }
}

/** Value of an entry; undefined if it is missing or damaged. */
function read(file: string): { readonly value: unknown } | undefined {
  try {
    const found = unsealed(basename(file), readFileSync(file))
    if (found === undefined) return undefined
    const now = new Date()
    utimesSync(file, now, now)
    return found
  } catch {
    return undefined
  }
}

/** Writes an entry to a temporary file and renames it, so that no partial entry is read. Write errors are ignored. */
function write(folder: string, file: string, value: unknown): void {
  const temporary = `${file}.${process.pid}.tmp`
  try {
    const content = sealed(basename(file), value)
    mkdirSync(folder, { recursive: true })
    writeFileSync(temporary, content)
    renameSync(temporary, file)
  } catch {
    removeIfThere(temporary)
  }
}

/** Removes a file. Ignores errors of folders that are missing or cannot be written. */
function removeIfThere(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // The file does not exist.
  }
}

/** True if the last scan is older than `every`. Records this scan next to the folder. */
function isDue(folder: string, every: number): boolean {
  const stamp = `${folder}.swept`
  try {
    const last = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - last < every) return false
    mkdirSync(dirname(stamp), { recursive: true })
    writeFileSync(stamp, '')
  } catch {
    // A folder that cannot be written has no entries.
  }
  return true
}

const noteOf = (folder: string): string => `${folder}.project`

/** Records the project of a folder, and removes folders of deleted projects. */
function forgetGone(folder: string, project: string): void {
  try {
    writeFileSync(noteOf(folder), project)
    const beside = dirname(folder)
    for (const name of readdirSync(beside)) {
      const other = join(beside, basename(name, '.project'))
      if (!name.endsWith('.project') || existsSync(readFileSync(noteOf(other), 'utf8'))) continue
      for (const path of [other, `${other}.swept`, noteOf(other)]) rmSync(path, { recursive: true, force: true })
    }
  } catch {
    // A folder that cannot be written has no entries.
  }
}

/** Removes the least recently used entries until the rest takes half of the limit, and temporary files of killed writers. */
function sweepMemo(folder: string, limit: number): void {
  try {
    const files = readdirSync(folder).flatMap((name) => {
      const path = join(folder, name)
      const state = statSync(path, { throwIfNoEntry: false })
      return state === undefined ? [] : [{ path, bytes: state.size, used: state.mtimeMs }]
    })
    for (const { path, used } of files) if (path.endsWith('.tmp') && Date.now() - used > seldom) rmSync(path, { force: true })
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    if (bytes <= limit) return
    for (const file of files.sort((a, b) => a.used - b.used)) {
      if (bytes <= limit / 2) return
      rmSync(file.path, { force: true })
      bytes -= file.bytes
    }
  } catch {
    // The folder does not exist yet, or nothing may be removed.
  }
}
