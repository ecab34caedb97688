/**
 * Files of the agent by digest, in the remote user's cache: kernel libraries, and tensors that were sent before. The least recently used tensors
 * go when they take more than a limit; everything unused for a month goes.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const limitBytes = 4 * 2 ** 30
const unusedMs = 30 * 24 * 3600 * 1000

export const digestOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

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
  /** Path of a stored file; undefined without it. */
  find(digest: string): string | undefined
  hasFiles(): boolean
  read(digest: string): Uint8Array | undefined
  /** @throws Error for bytes of another digest; errors of the file system */
  add(digest: string, data: Uint8Array): string
}

export function openStore(folder: string): Store {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  touch(folder)
  const find = (digest: string): string | undefined => {
    const path = join(folder, digest)
    return /^[0-9a-f]{64}$/.test(digest) && touch(path) ? path : undefined
  }
  return {
    find,
    hasFiles: () => readdirSync(folder).length > 0,
    read(digest) {
      const path = find(digest)
      return path === undefined ? undefined : readFileSync(path)
    },
    add(digest, data) {
      if (digestOf(data) !== digest) throw new Error(`bytes that were sent as ${digest} have another digest`)
      const temporary = join(folder, `.${randomBytes(8).toString('hex')}`)
      try {
        writeFileSync(temporary, data, { mode: 0o600 })
        renameSync(temporary, join(folder, digest))
      } catch (error) {
        rmSync(temporary, { force: true })
        throw error
      }
      return join(folder, digest)
    },
  }
}

/** Removes entries of a folder that were unused for a month, and the oldest beyond the limit. Errors are ignored: another agent may sweep too. */
export function sweep(folder: string, limit = limitBytes, now = Date.now()): void {
  const entries = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    return found === undefined ? [] : [{ path, bytes: found.isFile() ? found.size : 0, used: found.mtimeMs }]
  })
  let held = 0
  for (const { path, bytes, used } of entries.sort((a, b) => b.used - a.used)) {
    held += bytes
    if (held > limit || now - used > unusedMs) rmSync(path, { recursive: true, force: true })
  }
}
