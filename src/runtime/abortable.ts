/** Work on a device that an AbortSignal can stop: the device stops between two steps. */
import { HeddleError } from '../errors.js'

/** Starts `run` with the signal wired to `work.abort`. @throws the signal's reason when it aborts, else the error of `run` */
export async function abortable<T>(work: { abort(): void }, signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  const abort = (): void => work.abort()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await run()
  } catch (error) {
    if (error instanceof HeddleError && error.code === 'device.aborted') signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
