/**
 * Mutual exclusion of processes. The lock is proper-lockfile's: a folder whose time its holder keeps fresh, so that the lock of a killed process
 * is taken over within seconds, even if its process id is reused.
 */
import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import lockfile from 'proper-lockfile'
import { environmentError } from '../errors.js'
import { writing } from '../writing.js'

const pollMs = 100
/** Time without a heartbeat after which a holder counts as dead. */
const staleMs = 10_000

const options = (path: string) => ({ realpath: false, lockfilePath: path, stale: staleMs })

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  )

export interface LockOptions {
  readonly signal?: AbortSignal | undefined
  /** Called once if another process holds the lock. */
  readonly onWait?: (() => void) | undefined
}

/**
 * Runs `work` while holding the lock at `path`, after waiting for its holder. The signal that `work` receives fires when the caller's does, or
 * when the lock is lost because this process was stopped for too long.
 * @throws the signal's reason while waiting; environment `cache.*` if the lock cannot be created
 */
export async function locked<T>(
  path: string,
  { signal, onWait }: LockOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  await writing(path, () => mkdir(dirname(path), { recursive: true }))
  const lost = new AbortController()
  const onCompromised = () => lost.abort(environmentError('lock.lost', `another process has taken over the lock ${path}`))
  let notified = false
  let release: (() => Promise<void>) | undefined
  while (release === undefined) {
    signal?.throwIfAborted()
    try {
      release = await lockfile.lock(path, { ...options(path), onCompromised })
    } catch (error) {
      // Older versions used a file as the lock.
      if (await isFile(path)) await rm(path, { force: true })
      else if (codeOf(error) !== 'ELOCKED') await writing(path, () => Promise.reject(error))
      if (!notified) onWait?.()
      notified = true
      await sleep(pollMs)
    }
  }
  try {
    return await work(signal === undefined ? lost.signal : AbortSignal.any([signal, lost.signal]))
  } finally {
    await release().catch(() => undefined)
  }
}

/** True if a living process holds the lock at `path`. */
export const isLocked = (path: string): Promise<boolean> => lockfile.check(path, options(path)).catch(() => false)
