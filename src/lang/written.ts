/** Where an author wrote a statement: kept by declarations, so that what is found wrong with them later can say it. */
import type { Written } from '../errors.js'

/** The stack at the caller of `callee`, which is on it. Making a text of it costs more than taking it, so that is left to who asks. */
export function writtenAt(callee: (...given: never[]) => unknown): Written {
  const here: Written = {}
  Error.captureStackTrace(here, callee)
  return here
}
