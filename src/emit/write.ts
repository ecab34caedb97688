/** Writing `generated/`: every file whole or not at all, stale files away, or only a comparison. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { writing } from '../writing.js'
import type { GeneratedFiles } from './generate.js'

/** What nvcc made of the text: kept beside it, by `heddle build --record`, and no part of what is generated. */
export const recordFile = 'resources.jsonl'

export interface WriteOptions {
  /** Compare only; write nothing. */
  readonly check?: boolean
}

/**
 * Brings `dir` to hold exactly `files`, and returns the paths that differed (changed, missing or stale), sorted. Files that
 * are right already are not touched, so a build sees no change.
 */
export async function writeGenerated(
  dir: string,
  files: GeneratedFiles,
  { check = false }: WriteOptions = {},
): Promise<{ readonly changed: readonly string[] }> {
  const stale = (await listFiles(dir)).filter((path) => path !== recordFile && !files.has(path))
  const changed: string[] = []
  for (const [path, text] of files) if ((await readText(join(dir, path))) !== text) changed.push(path)
  if (!check) {
    for (const path of changed) {
      const file = join(dir, path)
      await writing(file, async () => {
        await mkdir(dirname(file), { recursive: true })
        await writeFileAtomic(file, files.get(path) ?? '')
      })
    }
    for (const path of stale) await rm(join(dir, path))
  }
  return { changed: [...changed, ...stale].sort() }
}

async function readText(path: string): Promise<string | undefined> {
  return existsSync(path) ? readFile(path, 'utf8') : undefined
}

/** Every file below `dir`, relative to it, with `/`; none when it does not exist. */
async function listFiles(dir: string): Promise<string[]> {
  if (!existsSync(dir)) return []
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries.filter((e) => e.isFile()).map((e) => relative(dir, join(e.parentPath, e.name)).split(sep).join('/'))
}
