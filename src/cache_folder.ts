/** The one folder of a user that all projects share: what is compiled, and what is kept of the compiler itself. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

/**
 * Where compiled objects and libraries are kept: $HEDDLE_CACHE, else the user's cache folder. All projects share it, since everything in
 * it is found by content.
 */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.HEDDLE_CACHE) return resolve(env.HEDDLE_CACHE)
  const { XDG_CACHE_HOME: stated = '' } = env
  // The XDG rule: a path that is not absolute counts as none.
  return join(isAbsolute(stated) ? stated : join(homedir(), '.cache'), 'heddle')
}
