/**
 * Files of the agent by digest, in the remote user's cache: kernel libraries, and tensors that were sent before. The least recently used
 * go when they take more than a limit; everything unused for a month goes.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf } from './protocol.js'

const limitBytes = 4 * 2 ** 30
const unusedMs = 30 * 24 * 3600 * 1000

function touch(path: string): boolean {
  try {
    const now = new Date()
    utimesSync(path, now, now)
    return true
  } catch {
    return false
  }
}

export interface Store {
  hasFiles(): boolean
  /** Bytes of a digest; undefined if they are not stored, or damaged. */
  read(digest: string): Uint8Array | undefined
  /** Stores bytes. @returns their path. @throws errors of the file system */
  add(digest: string, data: Uint8Array): string
}

/** @throws errors of the file system */
export function openStore(folder: string): Store {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  touch(folder)
  return {
    hasFiles: () => readdirSync(folder).length > 0,
    read(digest) {
      const path = join(folder, digest)
      if (!/^[\w-]{32}$/.test(digest) || !touch(path)) return undefined
      const data = readFileSync(path)
      if (digestOf(data) === digest) return data
      rmSync(path, { force: true })
      return undefined
    },
    add(digest, data) {
      const path = join(folder, digest)
      if (statSync(path, { throwIfNoEntry: false }) !== undefined) return path
      const temporary = join(folder, `.${randomBytes(8).toString('hex')}`)
      try {
        writeFileSync(temporary, data, { mode: 0o600 })
        renameSync(temporary, path)
      } catch (error) {
        rmSync(temporary, { force: true })
        throw error
      }
      return path
    },
  }
}

/** Removes entries of a folder that were unused for a month, and the oldest beyond the limit. Errors are ignored: another agent may sweep too. */
export function sweep(folder: string, limit = limitBytes, now = Date.now()): void {
  const entries = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    // A small file takes a block of the disk.
    return found === undefined ? [] : [{ path, bytes: found.isFile() ? found.blocks * 512 : 0, used: found.mtimeMs }]
  })
  let held = 0
  for (const { path, bytes, used } of entries.sort((a, b) => b.used - a.used)) {
    held += bytes
    if (held > limit || now - used > unusedMs) rmSync(path, { recursive: true, force: true })
  }
}
