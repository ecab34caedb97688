/**
 * Digest of the compiler's own source: part of the key of everything that is cached between runs (memo.ts). `rolldown.config.ts` replaces
 * this module by the digest of the sources; unbundled, they are read on first use.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf } from './source_digest.js'

let known: string | undefined

/** Equal for equal sources, bundled or not. */
export function compilerDigest(): string {
  known ??= digestOf(dirname(fileURLToPath(import.meta.url)))
  return known
}
