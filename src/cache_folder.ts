/**
 * The one folder of a user that all projects share: what is compiled, what is kept of the compiler itself, and the record of what this user's own
 * `gen` wrote. All of it is code, so a folder that somebody else may write to is refused before anything in it is read.
 */
import { mkdirSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { environmentError } from './errors.js'

/** Permission to write for the group and for others. */
const othersWrite = 0o022

/**
 * Where compiled objects and libraries are kept: $HEDDLE_CACHE, else the user's cache folder. All projects share it, since everything in
 * it is found by content. It is made, for its owner alone, where it is missing.
 * @throws environment `cache.foreign` for a folder of another user, or one that others may write to; `cache.write` where none can be made
 */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const folder = namedFolder(env)
  const found = stateOf(folder)
  if (found === undefined) make(folder)
  else expectOwned(folder, found)
  return folder
}

/** Undefined where nothing is there, or a part of the path is a file. */
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

function namedFolder(env: NodeJS.ProcessEnv): string {
  if (env.HEDDLE_CACHE) return resolve(env.HEDDLE_CACHE)
  const { XDG_CACHE_HOME: stated = '' } = env
  // The XDG rule: a path that is not absolute counts as none.
  return join(isAbsolute(stated) ? stated : join(homedir(), '.cache'), 'heddle')
}

/** @throws environment `cache.write` for a file, `cache.foreign`. What root owns is as safe as the system is. */
function expectOwned(folder: string, found: Stats): void {
  if (!found.isDirectory()) throw unwritable(folder, 'a file has its name')
  const { uid, mode } = found
  const user = process.geteuid?.()
  if (user !== undefined && uid !== user && uid !== 0) {
    throw environmentError('cache.foreign', `the cache ${folder} belongs to user ${uid}, expected your own (${user})`, {
      hint: 'what lies there would run as you: name a folder of your own with HEDDLE_CACHE',
    })
  }
  if ((mode & othersWrite) === 0) return
  const octal = (mode & 0o777).toString(8)
  throw environmentError('cache.foreign', `others may write to the cache ${folder}: its mode is ${octal}, expected 700`, {
    hint: `what lies there would run as you: remove it, or, where nobody else has written to it, run chmod 700 ${folder}`,
  })
}

/** Makes a folder and those above it, one by one: Node's recursive call never returns for some places, such as one below /proc. */
function make(folder: string): void {
  const above = dirname(folder)
  if (above !== folder && stateOf(above) === undefined) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    // Another process was first; or whoever writes there is told what the file system refuses.
    if (code === 'ENOENT') throw unwritable(folder, 'no folder can be made there', cause)
  }
}
