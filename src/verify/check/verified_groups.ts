/**
 * Record of the groups of plans that were checked against their bodies before: a file of digests in `.heddle`, so that `gen` checks only
 * changed groups. A digest covers everything that the check reads; the file may be deleted at any time.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Verified } from '../../fuse/check/derived.js'
import { writeWhole } from '../../output.js'

/** Most digests in the file, the last used at the end: more than a project has groups. */
const most = 20_000

export interface VerifiedGroups extends Verified {
  /** Writes the file where a digest was added. */
  readonly save: () => Promise<void>
}

const isDigest = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** The digests of a project. A file that is missing or damaged counts as empty. */
export async function readVerifiedGroups(root: string): Promise<VerifiedGroups> {
  const file = join(root, '.heddle', 'verified_groups.txt')
  const text = await readFile(file, 'utf8').catch(() => '')
  const known = new Set(text.split('\n').filter(isDigest))
  const before = known.size
  return {
    has: (key) => {
      // A used digest moves to the end: digests of removed groups are dropped first.
      if (!known.delete(key)) return false
      known.add(key)
      return true
    },
    add: (key) => void known.add(key),
    save: async () => {
      if (known.size === before) return
      await writeWhole(file, `${[...known].slice(-most).join('\n')}\n`)
    },
  }
}
