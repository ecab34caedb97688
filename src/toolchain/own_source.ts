/**
 * The gate in front of the compilers: generated text is compiled if it is the package's own, if this user's own `gen` wrote it, or if the user
 * asked for that very folder as it lies. The manifest of a folder passes it when it is read, and each text when it is keyed (sources.ts), so that
 * no way to a compiler goes around it.
 */
import { basename, join, sep } from 'node:path'
import { usageError } from '../errors.js'
import { contentDigest, isOwn } from '../own_text.js'
import { packageRoot } from './paths.js'

/** Folders of the package that hold generated text: `shipped` is a bundle's. */
const packaged = ['generated', 'shipped']

/** True if a path is the package's own generated text. */
export const isPackaged = (path: string): boolean =>
  packaged.some((name) => `${path}${sep}`.startsWith(`${join(packageRoot(), name)}${sep}`))

/** True if a file of generated text with this content may be compiled or believed. @throws environment `cache.foreign` */
export const isTrusted = (path: string, content: string | Uint8Array): boolean =>
  isPackaged(path) || isOwn(contentDigest(content))

/** @throws usage `generated.foreign` for a file that neither the package nor this user's own `gen` wrote; environment `cache.foreign` */
export function expectTrusted(path: string, content: string | Uint8Array): void {
  if (isTrusted(path, content)) return
  const what = basename(path) === 'manifest.json' ? 'what it lists would run as you' : 'it would run as you'
  throw usageError('generated.foreign', `${path} was not written by your own \`heddle gen\`, and ${what}`, {
    hint: 'in a project whose specs you trust, run `heddle gen`, which writes it anew; `heddle check --generated` runs an edited text as it lies',
  })
}
