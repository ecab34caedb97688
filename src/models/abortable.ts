/** Runs of a program that an AbortSignal can stop: the signal asks the device, which stops between two steps. */
import { HeddleError } from '../errors.js'
import type { Program } from '../runtime/program.js'

/** Runs with the signal wired to the program's own abort. @throws the signal's reason when it aborts, else what `run` rejects with */
export async function abortable<T>(
  program: Pick<Program, 'abort'>,
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
): Promise<T> {
  const abort = (): void => program.abort()
  signal?.throwIfAborted()
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
