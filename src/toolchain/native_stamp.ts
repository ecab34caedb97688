/**
 * Stamp of a package's last native build: its inputs and outputs. The next start restores a file that is missing or damaged since then, like an
 * object of the cache.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { z } from 'zod'
import { writing } from '../writing.js'
import { fileDigest } from './hash.js'

const stampSchema = z.object({
  sources: z.string(),
  key: z.string(),
  cuda: z.boolean(),
  /** Digests of the built files, by name. */
  files: z.record(z.string(), z.string()),
})

export type Stamp = z.infer<typeof stampSchema>

const stampFile = 'heddle-build.json'

/** Stamp of a native folder; undefined if there is none, or if a file below `Release` has changed since the build. */
export async function readStamp(out: string): Promise<Stamp | undefined> {
  const text = await readFile(join(out, stampFile), 'utf8').catch(() => '')
  try {
    const stamp = stampSchema.parse(JSON.parse(text))
    const digests = await Promise.all(Object.keys(stamp.files).map((name) => fileDigest(join(out, 'Release', name))))
    return Object.values(stamp.files).every((digest, at) => digest === digests[at]) ? stamp : undefined
  } catch {
    return undefined
  }
}

/** Writes the stamp of a build with these files. @throws environment `cache.full`, `cache.write` */
export async function writeStamp(out: string, stamp: Omit<Stamp, 'files'>, names: readonly string[]): Promise<void> {
  const files: Record<string, string> = {}
  for (const name of names) {
    const digest = await fileDigest(join(out, 'Release', name))
    if (digest !== undefined) files[name] = digest
  }
  await writing(out, () => writeFileAtomic(join(out, stampFile), `${JSON.stringify({ ...stamp, files })}\n`))
}
