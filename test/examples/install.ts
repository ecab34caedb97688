/** A copy of an example with heddle installed as npm would: by its package.json, and with its command. Nothing is downloaded. */
import { chmod, cp, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const home = fileURLToPath(new URL('../..', import.meta.url))
export const examples = join(home, 'test/examples')

/** @param name of a folder beside this file @returns the copy's root, to be removed when done */
export const install = (name: string): Promise<string> => installed(join(examples, name))

/** The same for any folder. */
export async function installed(folder: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-example-'))
  await cp(folder, root, { recursive: true })
  const command = join(root, 'node_modules/.bin/heddle')
  await mkdir(join(root, 'node_modules/.bin'), { recursive: true })
  await symlink(home, join(root, 'node_modules/heddle'))
  await writeFile(command, `#!/bin/sh\nexec node ${join(home, 'dist/cli.js')} "$@"\n`)
  await chmod(command, 0o755)
  return root
}
