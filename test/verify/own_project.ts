/** A project in a separate folder that has this checkout installed as the package: its declarations are the sources. */
import { cp, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { main } from '../../src/cli/main.js'
import { buildNative } from '../../src/toolchain/index.js'

const home = fileURLToPath(new URL('../..', import.meta.url))

/** @param name of a folder in test/projects @returns its root, to be removed when done */
export async function ownProject(name: string): Promise<string> {
  const { folder } = await buildNative()
  process.env.HEDDLE_NATIVE ??= folder
  const root = await mkdtemp(join(tmpdir(), 'heddle-check-'))
  await cp(join(home, 'test/projects', name, 'specs'), join(root, 'specs'), { recursive: true })
  await linkPackage(root)
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  return root
}

/** Installs the package below a folder. Its types are the sources. */
export async function linkPackage(root: string): Promise<void> {
  const imported = { types: './src/index.ts', import: './dist/index.js' }
  await mkdir(join(root, 'node_modules/heddle'), { recursive: true })
  await writeFile(
    join(root, 'node_modules/heddle/package.json'),
    JSON.stringify({
      name: 'heddle',
      type: 'module',
      exports: { '.': imported, './std': { types: './src/std/index.ts', import: './dist/std.js' } },
    }),
  )
  for (const part of ['src', 'dist']) await symlink(join(home, part), join(root, 'node_modules/heddle', part))
}

/** Output and exit code of a command line. */
export async function heddleIn(root: string, ...argv: string[]) {
  const [out, log]: [string[], string[]] = [[], []]
  const code = await main(argv, { root, out: (text) => void out.push(text), log: (text) => void log.push(text) })
  process.exitCode = undefined
  return { code, out: out.join(''), log: log.join('') }
}
