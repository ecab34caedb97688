/**
 * Builds and runs the C++ programs of `test/native/fixtures` and the simt plugin they drive, with the system's C++ compiler
 * and nothing else. Every program prints one JSON line per check.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const compiler = process.env.CXX ?? 'g++'

const warnings = ['-Wall', '-Wextra', '-Werror', '-Wno-sign-compare']
const includes = ['native/include', 'native/simt/include'].flatMap((folder) => ['-I', join(root, folder)])

/** One printed check: the status of the C interface, its message, and numbers. NaN arrives as null. */
export interface Check {
  readonly name: string
  readonly status: number
  readonly message: string
  readonly values: readonly (number | null)[]
}

/** Status codes of native/include/heddle/abi.h. */
export const status = { ok: 0, invalid: 1, unavailable: 2, memory: 3, fault: 4 } as const

/** A scratch folder of one test file. */
export interface Workshop {
  /** Compiles fixtures (file names in `test/native/fixtures`) into a program and returns its path. */
  program(name: string, sources: readonly string[], flags?: readonly string[]): Promise<string>
  /** Builds the simt plugin from its sources and returns its path. */
  plugin(): Promise<string>
  remove(): Promise<void>
}

export async function workshop(): Promise<Workshop> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-native-'))
  const compile = async (output: string, sources: readonly string[], flags: readonly string[]): Promise<string> => {
    const path = join(folder, output)
    await run(compiler, [
      '-std=c++17',
      ...warnings,
      ...includes,
      ...flags,
      '-o',
      path,
      '-x',
      'c++',
      ...sources,
      '-x',
      'none',
      '-ldl',
      '-pthread',
    ])
    return path
  }
  return {
    program: (name, sources, flags = []) =>
      compile(
        name,
        sources.map((source) => join(root, 'test/native/fixtures', source)),
        ['-Og', ...flags],
      ),
    plugin: () => {
      const sources = ['plugin', 'memory', 'workers', 'matmul', 'matmul_check']
      return compile(
        'libheddle_simt.so',
        sources.map((source) => join(root, 'native/simt/plugin', `${source}.cpp`)),
        ['-O2', '-shared', '-fPIC', '-fvisibility=hidden'],
      )
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Runs a program with extra environment variables. @throws when it ends with an exit code or a signal */
export async function execute(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await run(program, [...args], { env: { ...process.env, ...env }, maxBuffer: 1 << 26 })
  return stdout
}

/** The same, with the printed checks by name. */
export async function checks(
  program: string,
  args: readonly string[],
  env?: Record<string, string>,
): Promise<ReadonlyMap<string, Check>> {
  const lines = (await execute(program, args, env)).trim().split('\n')
  return new Map(
    lines.map((line) => {
      const check: Check = JSON.parse(line)
      return [check.name, check]
    }),
  )
}
