/** Source locations of statements, stored by declarations so that later errors can name them. */
import type { Written } from '../errors.js'

/** Stack at the caller of `callee`, which must be on it. Formatting it costs more than capturing it, so that is left to the reader. */
export function writtenAt(callee: (...given: never[]) => unknown): Written {
  const here: Written = {}
  Error.captureStackTrace(here, callee)
  return here
}
