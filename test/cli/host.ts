/** Runs a command line in this process and collects what it prints. */
import { cp, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { main } from '../../src/cli/main.js'

/** The repository. */
export const repository = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

export const punctuationModel = `${repository}/test/data/models/kjv-punct-bert`

/** A folder with the specs of one of `test/projects`, in which heddle is installed; the caller removes it. */
export async function projectOf(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `heddle-${name}-`))
  await cp(join(repository, 'test/projects', name, 'specs'), join(folder, 'specs'), { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await mkdir(join(folder, 'node_modules'))
  await symlink(repository, join(folder, 'node_modules/heddle'))
  return folder
}

export interface Outcome {
  readonly exitCode: number
  readonly out: string
  readonly log: string
}

export async function heddle(argv: readonly string[], root: string = repository): Promise<Outcome> {
  let [out, log] = ['', '']
  const exitCode = await main(argv, {
    root,
    out: (text) => {
      out += text
    },
    log: (text) => {
      log += text
    },
  })
  // The verdict is the returned code; the exit code of the test runner must not change.
  process.exitCode = undefined
  return { exitCode, out, log }
}
