/**
 * Results of the compiler that are kept between runs: what an op lowers to, what a plan derives, a kernel's text. Each is found by a digest of
 * everything it follows from, the compiler itself included, so that nothing has to be told of a change: what is made of other things has
 * another key. An entry is one file that holds a digest of itself and its name; one that is damaged, or of another key, counts as missing and is
 * made again.
 *
 * Kept in the user's cache, in a folder for each project and one for what all of them share: results are run and compiled, so that none is taken from the
 * project's own folder, which may have come from anybody. They may be deleted at any time. `HEDDLE_KEPT=off` keeps and finds nothing.
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
import { deserialize, serialize } from 'node:v8'
import { cacheFolder } from './cache_folder.js'
import { compilerDigest } from './compiler_digest.js'

export interface Memo {
  /**
   * What `make` returns: plain data, made now or by an earlier run.
   * @param kind of result, part of its key
   * @param parts texts that say everything `make` reads, besides the compiler
   */
  of<T>(kind: string, parts: readonly string[], make: () => T): T
  /** A place for what says itself whether it is still so: the latest that was written there. */
  slot<T>(kind: string, parts: readonly string[]): Slot<T>
}

export interface Slot<T> {
  readonly read: () => T | undefined
  readonly write: (value: T) => void
}

/** Makes everything anew. */
export const noMemo: Memo = {
  of: (_kind, _parts, make) => make(),
  slot: () => ({ read: () => undefined, write: () => undefined }),
}

/** Bytes that a project's entries may take: those of a project as large as heddle's own specs some ten times over. */
const most = 256 * 2 ** 20

/** Milliseconds between two looks at what all entries take: there are thousands. */
const seldom = 3_600_000

/** Bytes of a SHA-256. */
const digestBytes = 32

const sha256 = (content: string | Uint8Array): Buffer => createHash('sha256').update(content).digest()

interface Limits {
  readonly limit?: number
  readonly every?: number
  /** Whose results they are, which go when it is gone. */
  readonly project?: string
}

/** Where the results of a project are kept. @throws environment `cache.foreign` */
export const memoFolder = (root: string): string =>
  join(cacheFolder(), 'projects', sha256(resolve(root)).toString('hex').slice(0, 16))

/**
 * The results kept for a project. A cache that cannot be written to keeps none.
 * @param limit in bytes, of which what was not used for longest goes first; looked at every so many milliseconds
 */
export const openMemo = (root: string, limits: Limits = {}): Memo =>
  memoIn(memoFolder(root), { ...limits, project: resolve(root) })

/** The results kept in a folder, for those of no one project. */
export function memoIn(folder: string, { limit = most, every = seldom, project }: Limits = {}): Memo {
  if (process.env.HEDDLE_KEPT === 'off') return noMemo
  let swept = false
  const fileOf = (kind: string, parts: readonly string[]): string =>
    join(folder, sha256(JSON.stringify([compilerDigest(), process.version, kind, ...parts])).toString('base64url'))
  const keep = (file: string, value: unknown): void => {
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
      keep(file, value)
      return value
    },
    slot: <T>(kind: string, parts: readonly string[]): Slot<T> => {
      const file = fileOf(kind, parts)
      return { read: () => read(file)?.value as T | undefined, write: (value) => keep(file, value) }
    },
  }
}

/** Says which entry a payload is, whole. */
const sealOf = (file: string, payload: Uint8Array): Buffer => createHash('sha256').update(basename(file)).update(payload).digest()

/** What an entry holds; undefined where it is missing or not as it was written. */
function read(file: string): { readonly value: unknown } | undefined {
  try {
    const content = readFileSync(file)
    const payload = content.subarray(digestBytes)
    if (!sealOf(file, payload).equals(content.subarray(0, digestBytes))) return undefined
    const value: unknown = deserialize(payload)
    const now = new Date()
    utimesSync(file, now, now)
    return { value }
  } catch {
    return undefined
  }
}

/** Writes an entry beside its place and moves it there, so that nobody reads half of one. What cannot be written is not kept. */
function write(folder: string, file: string, value: unknown): void {
  const temporary = `${file}.${process.pid}.tmp`
  try {
    const payload = serialize(value)
    mkdirSync(folder, { recursive: true })
    writeFileSync(temporary, Buffer.concat([sealOf(file, payload), payload]))
    renameSync(temporary, file)
  } catch {
    removeIfThere(temporary)
  }
}

/** A folder that cannot be written to, or is none, has nothing to remove. */
function removeIfThere(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // It is not there.
  }
}

/** True if the last look is so long ago. This one is noted beside the folder. */
function isDue(folder: string, every: number): boolean {
  const stamp = `${folder}.swept`
  try {
    const last = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - last < every) return false
    mkdirSync(dirname(stamp), { recursive: true })
    writeFileSync(stamp, '')
  } catch {
    // A folder that cannot be written to keeps nothing.
  }
  return true
}

const noteOf = (folder: string): string => `${folder}.project`

/** Notes which project a folder is of, and removes those of projects that are gone. */
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
    // A folder that cannot be written to keeps nothing.
  }
}

/** Removes what was not used for longest, until the rest takes half of the limit, and what killed writers left. */
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
    // Nothing is kept there yet, or nothing may be removed.
  }
}
