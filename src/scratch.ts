/**
 * Temporary folders below a project's `.heddle`. A killed process leaves its folder behind; the next call for the same kind removes it after an
 * hour or more.
 */
import { mkdir, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writing } from './writing.js'

/** A younger folder may belong to a process of another machine or container, whose process ids mean nothing here. */
const leastAgeMs = 3_600_000

/** Creates a folder, which the caller removes. @throws environment `cache.full`, `cache.write` if nothing can be written */
export async function makeScratch(root: string, kind: string, now: number = Date.now()): Promise<string> {
  const base = join(root, '.heddle')
  return writing(base, async () => {
    await mkdir(base, { recursive: true })
    await removeLeft(base, kind, now)
    return realpath(await mkdtemp(join(base, `${kind}-${process.pid}-`)))
  })
}

async function removeLeft(base: string, kind: string, now: number): Promise<void> {
  for (const name of await readdir(base)) {
    const [, owner] = new RegExp(`^${kind}-(\\d+)-`).exec(name) ?? []
    if (owner === undefined || isAlive(Number(owner))) continue
    const path = join(base, name)
    const made = await stat(path).catch(() => undefined)
    if (made !== undefined && now - made.mtimeMs > leastAgeMs) await rm(path, { recursive: true, force: true })
  }
}

/** True if a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
