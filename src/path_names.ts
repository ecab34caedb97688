/**
 * Paths as names in texts, keys and generated files: with `/` on every system, as TypeScript writes them too. A path that Node returns has
 * backslashes on Windows. Functions take the path module, so that Windows' is tested on every system.
 */
import path, { type PlatformPath } from 'node:path'

export type PathModule = Pick<PlatformPath, 'isAbsolute' | 'join' | 'relative' | 'resolve' | 'sep'>

/** The path with `/`. Elsewhere than on Windows a backslash is part of a name. */
export const slashed = (text: string, paths: PathModule = path): string =>
  paths.sep === '\\' ? text.replaceAll('\\', '/') : text

/** Path of a file relative to a folder, with `/`. */
export const nameIn = (folder: string, file: string, paths: PathModule = path): string =>
  slashed(paths.relative(folder, file), paths)

/** True if a path is a folder, or is below it; false on another drive. Neither has to exist. */
export function isWithin(folder: string, file: string, paths: PathModule = path): boolean {
  const rest = paths.relative(folder, file)
  return rest !== '..' && !rest.startsWith(`..${paths.sep}`) && !paths.isAbsolute(rest)
}
