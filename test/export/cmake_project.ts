/** A CMake project outside of the repository that finds heddle: two graphs in two storage types, built as their user does. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../src/toolchain/index.js'
import { linkPackage } from '../verify/own_project.js'

export interface Ran {
  readonly code: number
  readonly output: string
}

/** Runs a program to its end. */
export const ran = (path: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env, cwd?: string): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(path, [...args], { env, cwd, maxBuffer: 2 ** 26 }, (error, out, log) => {
      const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : 1
      resolve({ code, output: `${out}${log}` })
    })
  })

export interface CmakeProject {
  readonly folder: string
  configure(...flags: readonly string[]): Promise<Ran>
  build(): Promise<Ran>
  app(): Promise<Ran>
}

/** @returns the project, whose folder is to be removed when done */
export async function cmakeProject(): Promise<CmakeProject> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-cmake-'))
  await cp(join(import.meta.dirname, 'cmake_project'), folder, { recursive: true })
  await linkPackage(folder)
  await writeFile(join(folder, 'package.json'), '{ "name": "own", "type": "module" }\n')
  const build = join(folder, 'build')
  return {
    folder,
    configure: (...flags) => ran('cmake', ['-S', folder, '-B', build, `-Dheddle_DIR=${join(packageRoot(), 'cmake')}`, ...flags]),
    build: () => ran('cmake', ['--build', build, '--parallel', '2']),
    app: () => ran(join(build, 'app'), []),
  }
}

/** Files that a build compiled. */
export const compiledIn = ({ output }: Ran): readonly string[] =>
  [...output.matchAll(/Building \w+ object (?:\S*\/)?(\S+)\.o$/gm)].map(([, file = '']) => file).sort()
