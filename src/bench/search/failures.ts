/** Failures of a group in a search: those of its kernel recur and are stored, those of the machine are not. */
import { HeddleError } from '../../errors.js'

/** A group that has no time: its kernel cannot be run, or there was no room for it this time. */
export type Failure = { readonly refused: string } | { readonly skipped: string }

const firstLine = ({ message }: HeddleError): string => message.split('\n')[0] ?? ''

/**
 * Returns the failure of one group.
 * @throws the signal's reason; the error itself where other groups would meet it, too: a missing compiler, a lost device, a defect of heddle
 */
export function failureOf(error: unknown, signal: AbortSignal): Failure {
  signal.throwIfAborted()
  if (!(error instanceof HeddleError)) throw error
  if (error.class !== 'environment') return { refused: firstLine(error) }
  if (error.code !== 'device.memory') throw error
  return { skipped: firstLine(error) }
}
