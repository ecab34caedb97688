/**
 * Work on a device that an AbortSignal can stop: the device stops between two steps. An abort ends every requested run of a program, so that one whose
 * runs overlap is aborted only once all callers that wait for it have given up.
 */
import { HeddleError } from '../errors.js'

/** A program, or anything else whose requested runs end together. */
interface Work {
  abort(): void
}

/** Signals of the runs in flight, by their work. */
const inFlight = new WeakMap<Work, Set<{ readonly signal: AbortSignal | undefined }>>()

/** Starts `run`, which the signal may stop. @throws the signal's reason when it aborts, else the error of `run` */
export async function abortable<T>(work: Work, signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  const own = { signal }
  const all = inFlight.get(work) ?? new Set()
  inFlight.set(work, all.add(own))
  const abortIfUnwanted = (): void => {
    if (all.size > 0 && [...all].every((each) => each.signal?.aborted === true)) work.abort()
  }
  signal?.addEventListener('abort', abortIfUnwanted, { once: true })
  try {
    const result = await run()
    signal?.throwIfAborted()
    return result
  } catch (error) {
    if (error instanceof HeddleError && error.code === 'device.aborted') signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', abortIfUnwanted)
    all.delete(own)
    abortIfUnwanted()
  }
}
