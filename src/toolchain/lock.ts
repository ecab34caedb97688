/**
 * One process at a time in a folder that a foreign build tool writes to. The lock is a file with the holder's process id, so that a
 * lock whose holder has died is taken over.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const pollMs = 200

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of another user exists too.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** True when this call made the file. */
async function take(path: string): Promise<boolean> {
  return writeFile(path, String(process.pid), { flag: 'wx' }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false
      throw error
    },
  )
}

/** Runs `work` while holding the lock file, after waiting for whoever holds it. @throws the signal's reason while waiting */
export async function locked<T>(path: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  while (!(await take(path))) {
    signal?.throwIfAborted()
    const holder = Number(await readFile(path, 'utf8').catch(() => ''))
    // An empty file is one whose holder is about to write its id.
    if (holder > 0 && !isAlive(holder)) await rm(path, { force: true })
    else await sleep(pollMs)
  }
  try {
    return await work()
  } finally {
    await rm(path, { force: true })
  }
}
