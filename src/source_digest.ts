/** Digest of a compiler as TypeScript in a folder: its modules and package.json. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

/** @param folder `src`; `package.json` is next to it */
export function digestOf(folder: string): string {
  const root = resolve(folder, '..')
  const hash = createHash('sha256')
  const files = [...filesOf(folder, '.ts'), join(root, 'package.json')]
  for (const file of files) {
    const text = readFileSync(file)
    hash.update(`${relative(root, file)} ${text.length}\n`).update(text)
  }
  return hash.digest('base64url')
}

const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => join(folder, name))
