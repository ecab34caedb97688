/**
 * The record of what this user's own heddle wrote: texts that `gen` generated and libraries that `build` linked, by their content. It lies in the
 * user's cache, since a digest that lies beside a file proves nothing of who wrote both. What is not in it is not compiled or loaded.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache_folder.js'
import { writing } from './writing.js'

const recordFolder = (): string => join(cacheFolder(), 'own')

export const contentDigest = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

/** Records contents by their digests: an empty file for each. @throws environment `cache.*` where nothing can be written */
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

/** True if this user's own heddle wrote the content. @throws environment `cache.foreign` */
export const isOwn = (digest: string): boolean => /^[0-9a-f]{64}$/.test(digest) && existsSync(join(recordFolder(), digest))
