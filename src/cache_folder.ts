/**
 * Cache folder of a user, shared by all projects: compiled objects, cached results of the compiler, and the record of sources that this user's
 * own `gen` wrote. All of it is code, so a folder that others may write to is refused before anything in it is read.
 */
import { mkdirSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, type PlatformPath, posix, resolve, win32 } from 'node:path'
import { environmentError } from './errors.js'

/** Permission to write for the group and for others. */
const othersWrite = 0o022

/**
 * Folder of compiled objects and libraries: $HEDDLE_CACHE, else the user's cache folder. All projects share it, because entries are
 * addressed by content. Created with permissions for its owner only, if missing.
 * @throws environment `cache.foreign` for a folder of another user, or one that others may write to; `cache.write` if it cannot be created
 */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const folder = namedFolder(env, process.platform, homedir())
  const found = stateOf(folder)
  if (found === undefined) make(folder)
  else expectOwned(folder, found)
  return folder
}

/** Undefined if nothing exists at the path, or a part of the path is a file. */
function stateOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

const unwritable = (folder: string, why: string, cause?: unknown) =>
  environmentError('cache.write', `cannot write ${folder}: ${why}`, {
    hint: 'name another folder for the cache with HEDDLE_CACHE',
    cause,
  })

/**
 * The folder of a user on a system: `%LOCALAPPDATA%\\heddle\\Cache`, `~/Library/Caches/heddle`, `~/.cache/heddle`. $HEDDLE_CACHE, and an absolute
 * $XDG_CACHE_HOME except on Windows, name another.
 */
export function namedFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform, home: string): string {
  if (env.HEDDLE_CACHE) return resolve(env.HEDDLE_CACHE)
  const { isAbsolute, join }: PlatformPath = platform === 'win32' ? win32 : posix
  if (platform === 'win32') {
    const { LOCALAPPDATA: local = '' } = env
    return join(isAbsolute(local) ? local : join(home, 'AppData', 'Local'), 'heddle', 'Cache')
  }
  const { XDG_CACHE_HOME: stated = '' } = env
  // By the XDG specification, a relative path is ignored.
  if (isAbsolute(stated)) return join(stated, 'heddle')
  return platform === 'darwin' ? join(home, 'Library', 'Caches', 'heddle') : join(home, '.cache', 'heddle')
}

/** @throws environment `cache.write` for a file, `cache.foreign`. A folder of root is accepted: it is as safe as the system. */
function expectOwned(folder: string, found: Stats): void {
  if (!found.isDirectory()) throw unwritable(folder, 'it is a file')
  const { uid, mode } = found
  const user = process.geteuid?.()
  // Windows has no such modes: the folder below the user's profile is the user's own.
  if (user === undefined) return
  if (uid !== user && uid !== 0) {
    throw environmentError('cache.foreign', `the cache ${folder} belongs to user ${uid}, expected your own (${user})`, {
      hint: 'its content would run as you: name your own folder with HEDDLE_CACHE',
    })
  }
  if ((mode & othersWrite) === 0) return
  const octal = (mode & 0o777).toString(8)
  throw environmentError('cache.foreign', `others may write to the cache ${folder}: its mode is ${octal}, expected 700`, {
    hint: `its content would run as you: remove it, or, if nobody else has written to it, run chmod 700 ${folder}`,
  })
}

/** Creates a folder and its parents, one by one: Node's recursive call never returns for some paths, such as one below /proc. */
function make(folder: string): void {
  const above = dirname(folder)
  if (above !== folder && stateOf(above) === undefined) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    // Another process may have created it. For other errors, the first write reports the reason.
    if (code === 'ENOENT') throw unwritable(folder, 'no folder can be created there', cause)
  }
}
