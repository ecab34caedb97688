/**
 * The native build without CMake: the addon and the CPU device by plain calls of the C++ compiler, with the flags of native/CMakeLists.txt. Used where
 * CMake is missing. The CUDA plugin needs CMake.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { basename, dirname, join } from 'node:path'
import pLimit from 'p-limit'
import { writing } from '../writing.js'
import { runTool, type ToolResult } from './process.js'
import { hostRuntime } from './recipe.js'

export interface PlainOptions {
  /** Path of the compiler. */
  readonly cxx: string
  readonly signal?: AbortSignal | undefined
}

/** A library of native/. */
interface Part {
  readonly output: string
  readonly sources: readonly string[]
  readonly flags: readonly string[]
}

const common = ['-std=c++17', '-O3', '-DNDEBUG', '-fPIC', '-fvisibility=hidden', '-fvisibility-inlines-hidden', '-pthread']
const warnings = ['-Wall', '-Wextra', '-Werror']

/** Definitions of the addon: see native/CMakeLists.txt. */
const definitions = [
  'NAPI_VERSION=9',
  'NAPI_CPP_EXCEPTIONS',
  'NODE_ADDON_API_CPP_EXCEPTIONS_ALL',
  'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
  'BUILDING_NODE_EXTENSION',
]

const sourcesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.cpp')).map((name) => join(folder, name))

/** Header folders of Node's interface for addons. */
function nodeHeaders(): readonly string[] {
  const { resolve } = createRequire(import.meta.url)
  return [join(dirname(resolve('node-api-headers/package.json')), 'include'), dirname(resolve('node-addon-api/package.json'))]
}

async function partsOf(source: string): Promise<readonly Part[]> {
  const shared = [join(source, 'portable', 'glibc.cpp')]
  const include = ['-I', join(source, 'include')]
  return [
    {
      output: 'heddle.node',
      sources: [...(await sourcesIn(join(source, 'addon'))), ...shared],
      flags: [...include, ...nodeHeaders().flatMap((folder) => ['-isystem', folder]), ...definitions.map((name) => `-D${name}`)],
    },
    {
      output: 'libheddle_simt.so',
      sources: [...(await sourcesIn(join(source, 'simt', 'plugin'))), ...shared],
      flags: [...include, '-I', join(source, 'simt', 'include'), '-ffp-contract=fast'],
    },
  ]
}

/**
 * Compiles native/ of a package into `out/Release`, each file on its own.
 * @returns the output of the first call that failed; undefined if all succeeded
 */
export async function compilePlain(source: string, out: string, { cxx, signal }: PlainOptions): Promise<ToolResult | undefined> {
  const jobs = pLimit(availableParallelism())
  for (const { output, sources, flags } of await partsOf(source)) {
    const objects = join(out, 'plain', output)
    await writing(out, async () => {
      await rm(objects, { recursive: true, force: true })
      await mkdir(objects, { recursive: true })
    })
    const objectOf = (file: string): string => join(objects, `${basename(file)}.o`)
    const compiled = await Promise.all(
      sources.map((file) =>
        jobs(() => runTool(cxx, [...common, ...warnings, ...flags, '-c', file, '-o', objectOf(file)], { signal })),
      ),
    )
    const link = ['-shared', '-pthread', ...hostRuntime, ...sources.map(objectOf), '-ldl', '-o', join(out, 'Release', output)]
    const failed = compiled.find(({ exitCode }) => exitCode !== 0)
    if (failed !== undefined) return failed
    const linked = await runTool(cxx, link, { signal })
    if (linked.exitCode !== 0) return linked
  }
  return undefined
}
