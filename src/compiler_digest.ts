/**
 * A digest of the compiler's own text: part of the key of everything that is kept between runs (memo.ts). `rolldown.config.ts` puts the
 * digest of the sources in the place of this module; where they run unbundled, they are read when it is first asked for.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf } from './source_digest.js'

let known: string | undefined

/** The same for the same sources, bundled or not. */
export function compilerDigest(): string {
  known ??= digestOf(dirname(fileURLToPath(import.meta.url)))
  return known
}
