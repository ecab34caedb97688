/** An app outside of the repository that a bundler bundles, with this checkout as its installed package. */
import { cp, mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Ran, ran } from '../export/cmake_project.js'

export interface App {
  readonly root: string
  /** Replaces a part of a file. @throws if the file does not have it */
  edit(file: string, from: string, to: string): Promise<void>
  /** Runs the bundle in Node, where no compiler is on the path. */
  run(device: 'simt' | 'js'): Promise<Ran>
}

/** @returns the app, whose folder is to be removed when done */
export async function bundledApp(): Promise<App> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-app-'))
  await cp(join(import.meta.dirname, 'app'), root, { recursive: true })
  await writeFile(join(root, 'package.json'), '{ "name": "app", "type": "module", "dependencies": { "heddle": "*" } }\n')
  await mkdir(join(root, 'node_modules'))
  await symlink(fileURLToPath(new URL('../..', import.meta.url)), join(root, 'node_modules/heddle'))
  return {
    root,
    async edit(file, from, to) {
      const text = await readFile(join(root, file), 'utf8')
      if (!text.includes(from)) throw new Error(`${file} does not have ${from}`)
      await writeFile(join(root, file), text.replace(from, to))
    },
    run: (device) => ran(process.execPath, [join(root, 'dist/main.js'), device], { ...process.env, PATH: '', CXX: '' }, root),
  }
}
