/**
 * Folders below a project's `.heddle` that last as long as what is done in them. A process that is killed leaves its own; whoever makes one of the
 * kind an hour later or more removes it.
 */
import { mkdir, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writing } from './writing.js'

/** What is younger may belong to a process of another machine or container, whose numbers say nothing here. */
const leastAgeMs = 3_600_000

/** A new folder, which the caller removes. @throws environment `cache.full`, `cache.write` where nothing can be written */
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

/** Tells of a number of a process if there is one. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // One that belongs to somebody else lives.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
