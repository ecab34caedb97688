/**
 * Trust check before compilation: generated source is compiled if it is the package's own, if this user's own `gen` wrote it, or if the user
 * accepts that folder as is. The manifest of a folder is checked when it is read, and each file when its key is computed (sources.ts), so that
 * no path to a compiler bypasses the check.
 */
import { basename, join } from 'node:path'
import { usageError } from '../errors.js'
import { contentDigest, isOwn } from '../own_text.js'
import { isWithin } from '../path_names.js'
import { packageRoot } from './paths.js'

/** Folders of the package that hold generated source: `shipped` is a bundle's. */
const packaged = ['generated', 'shipped']

/** True if a path is the package's own generated source. */
export const isPackaged = (path: string): boolean => packaged.some((name) => isWithin(join(packageRoot(), name), path))

/** True if a file of generated source with this content may be compiled or trusted. @throws environment `cache.foreign` */
export const isTrusted = (path: string, content: string | Uint8Array): boolean =>
  isPackaged(path) || isOwn(contentDigest(content))

/** @throws usage `generated.foreign` for a file that neither the package nor this user's own `gen` wrote; environment `cache.foreign` */
export function expectTrusted(path: string, content: string | Uint8Array): void {
  if (isTrusted(path, content)) return
  const what = basename(path) === 'manifest.json' ? 'the code it lists would run as you' : 'it would run as you'
  throw usageError('generated.foreign', `${path} was not written by your own \`heddle gen\`, and ${what}`, {
    hint: 'in a project whose specs you trust, run `heddle gen`, which rewrites it; `heddle check --generated` runs edited source as is',
  })
}
