/**
 * Record of files that this user's own heddle wrote: sources from `gen` and libraries from `build`, by content digest. Stored in the user's cache,
 * because a digest next to a file does not prove who wrote both. Files that are not recorded are neither compiled nor loaded.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache_folder.js'
import { writing } from './writing.js'

const recordFolder = (): string => join(cacheFolder(), 'own')

export const contentDigest = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

/** Records digests of contents, with an empty file for each. @throws environment `cache.*` if nothing can be written */
export async function recordOwn(digests: Iterable<string>): Promise<void> {
  const folder = recordFolder()
  await writing(folder, async () => {
    mkdirSync(folder, { recursive: true })
    for (const digest of digests) {
      const path = join(folder, digest)
      if (!existsSync(path)) writeFileSync(path, '')
    }
  })
}

/** True if this user's own heddle wrote content with this digest. @throws environment `cache.foreign` */
export const isOwn = (digest: string): boolean => /^[0-9a-f]{64}$/.test(digest) && existsSync(join(recordFolder(), digest))
