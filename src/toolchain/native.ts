/**
 * Builds the addon and the device plugins with cmake-js into `.heddle/native` of the project, so that an installed package
 * stays untouched. Skipped when a hash of the sources and tools says that the last build is current.
 */
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { environmentError, findingError } from '../errors.js'
import { type Compiler, findCmake, findNvcc, requireCxx } from './compilers.js'
import { canonicalJson, hashTree, sha256 } from './hash.js'
import { locked } from './lock.js'
import { outputs, packageRoot } from './paths.js'
import { firstLines, runTool } from './process.js'
import { hostRuntime } from './recipe.js'

export interface NativeResult {
  /** Holds heddle.node, libheddle_simt.so and, where it could be built, libheddle_cuda.so. */
  readonly folder: string
  readonly built: boolean
}

const required = ['heddle.node', 'libheddle_simt.so']

/**
 * Builds native/ of the package into `<root>/.heddle/native/Release`. Calls from several processes wait for each other.
 * @throws environment `toolchain.cmake`, `toolchain.cxx`; finding `build.native` with the first lines of the failure
 */
export async function buildNative(options: { root: string; signal?: AbortSignal | undefined }): Promise<NativeResult> {
  const { root, signal } = options
  const source = join(packageRoot(), 'native')
  if (!existsSync(join(source, 'CMakeLists.txt'))) {
    throw environmentError('build.native', `${source} has no sources to build from`, {
      hint: 'the portable bundle is already built; install the package to build',
    })
  }
  const [cmake, cxx, nvcc] = await Promise.all([findCmake(), requireCxx(), findNvcc()])
  if (cmake === undefined) {
    throw environmentError('toolchain.cmake', 'cmake was not found on PATH', { hint: 'install CMake 3.22 or later' })
  }
  const key = sha256(
    canonicalJson({
      sources: await hashTree(source, ['build']),
      tools: [cmake.version, cxx.version, nvcc?.version ?? 'none'],
      source,
      flags: hostRuntime,
    }),
  )
  const { native: out, nativeRelease: folder } = outputs(root)
  return locked(`${out}.lock`, signal, async () => {
    if (await isCurrent(out, folder, key)) return { folder, built: false }
    await compile(source, out, { cxx, nvcc, signal })
    await writeFileAtomic(join(out, stampFile), key)
    return { folder, built: true }
  })
}

const stampFile = 'heddle-build.key'

const complete = (folder: string): boolean => required.every((name) => existsSync(join(folder, name)))

const isCurrent = async (out: string, folder: string, key: string): Promise<boolean> =>
  complete(folder) && (await readFile(join(out, stampFile), 'utf8').catch(() => '')) === key

interface Tools {
  readonly cxx: Compiler
  readonly nvcc: Compiler | undefined
  readonly signal: AbortSignal | undefined
}

async function compile(source: string, out: string, { cxx, nvcc, signal }: Tools): Promise<void> {
  const driver = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js')
  const args = [
    ...[driver, 'compile', '-d', source, '--out', out],
    ...['--parallel', String(availableParallelism())],
    `--CDCMAKE_CXX_COMPILER=${cxx.path}`,
    `--CDCMAKE_SHARED_LINKER_FLAGS=${hostRuntime.join(' ')}`,
    ...(nvcc === undefined ? [] : [`--CDCMAKE_CUDA_COMPILER=${nvcc.path}`]),
  ]
  // cmake-js configures only where there is no cache, and would keep the compiler and the flags of an earlier build.
  await rm(join(out, 'CMakeCache.txt'), { force: true })
  const { exitCode, stdout, stderr } = await runTool(process.execPath, args, { signal })
  if (exitCode === 0 && complete(join(out, 'Release'))) return
  throw findingError('build.native', `the native build failed:\n${firstLines(`${stdout}\n${stderr}`, 12)}`, {
    hint: 'run `heddle doctor` to see what the machine lacks',
    cause: stderr,
  })
}
