/** Allowed outcomes of hostile input: a result, or a typed error. Anything else is a fault of the reader and is rethrown. */
import { HeddleError } from '../../src/errors.js'

/** `ok`, or the code of the error. @throws any error that is not a `HeddleError` or has no content */
export async function outcome(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    if (error.message.length < 10 || error.message.length > 4000)
      throw new Error(`unclear or too long: ${error.message.slice(0, 200)}`)
    return error.code
  }
}

/** Bytes of a text with some of them changed, cut or doubled. */
export interface Damage {
  readonly edits: readonly (readonly [at: number, value: number])[]
  readonly cut: number | undefined
}

export function damaged(bytes: Uint8Array, { edits, cut }: Damage): Uint8Array {
  const copy = bytes.slice(0, cut === undefined ? undefined : Math.floor(cut * bytes.length))
  for (const [at, value] of edits) if (copy.length > 0) copy[Math.floor(at * copy.length) % copy.length] = value
  return copy
}
