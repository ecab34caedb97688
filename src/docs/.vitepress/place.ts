/**
 * Moves the output of a tool from a temporary folder to its final place, by heddle's rule for outputs: foreign files stay. TypeDoc and VitePress
 * empty the folders they write to.
 */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { writeListed } from '../../output_listed.js'

/** @param made a folder, which is removed afterwards; nothing is done if there is none @throws usage `output.folder`, `output.file` */
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
