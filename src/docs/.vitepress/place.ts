/**
 * Puts what a tool made in a folder of its own to its place, by the rule of all that heddle writes: files of somebody else stay. TypeDoc and VitePress
 * empty the folders they write to.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { writeListed } from '../../output_listed.js'

/** @param made a folder, which is gone afterwards; nothing is done where there is none @throws usage `output.folder`, `output.file` */
export async function place(made: string, folder: string, root: string): Promise<void> {
  const entries = await readdir(made, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (entries === undefined) return
  const files = new Map<string, Uint8Array>()
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) files.set(relative(made, path).split(sep).join('/'), await readFile(path))
  }
  await writeListed(folder, files, { root })
  await rm(made, { recursive: true })
}
