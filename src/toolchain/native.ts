/**
 * Builds the addon and the device plugins with cmake-js into `.heddle/native` of the project, so that an installed package
 * stays untouched. Skipped when a hash of the sources and tools says that the last build is current.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { environmentError, findingError } from '../errors.js'
import { findCmake, findNvcc, requireCxx } from './compilers.js'
import { canonicalJson, hashTree, sha256 } from './hash.js'
import { outputs, packageRoot } from './paths.js'
import { firstLines, runTool } from './process.js'

export interface NativeResult {
  /** Holds heddle.node, libheddle_simt.so and, where it could be built, libheddle_cuda.so. */
  readonly folder: string
  readonly built: boolean
}

const required = ['heddle.node', 'libheddle_simt.so']

/**
 * Builds native/ of the package into `<root>/.heddle/native/Release`.
 * @throws environment `toolchain.cmake`, `toolchain.cxx`; finding `build.native` with the first lines of the failure
 */
export async function buildNative(options: { root: string; signal?: AbortSignal | undefined }): Promise<NativeResult> {
  const source = join(packageRoot(), 'native')
  const { native: out, nativeRelease: folder } = outputs(options.root)
  if (!existsSync(join(source, 'CMakeLists.txt'))) {
    throw environmentError('build.native', `${source} has no sources to build from`, {
      hint: 'the portable bundle is already built; install the package to build',
    })
  }
  const [cmake, cxx, nvcc] = await Promise.all([findCmake(), requireCxx(), findNvcc()])
  if (cmake === undefined)
    throw environmentError('toolchain.cmake', 'cmake was not found on PATH', { hint: 'install CMake 3.20 or later' })

  const key = sha256(
    canonicalJson({
      sources: await hashTree(source, ['build']),
      tools: [cmake.version, cxx.version, nvcc?.version ?? 'none'],
      source,
    }),
  )
  const stamp = join(out, 'heddle-build.key')
  const present = required.every((name) => existsSync(join(folder, name)))
  if (present && (await readFile(stamp, 'utf8').catch(() => '')) === key) return { folder, built: false }

  const driver = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js')
  const { exitCode, stdout, stderr } = await runTool(
    process.execPath,
    [
      driver,
      'compile',
      ...['-d', source],
      ...['--out', out],
      ...['--parallel', String(availableParallelism())],
      `--CDCMAKE_CXX_COMPILER=${cxx.path}`,
      ...(nvcc === undefined ? [] : [`--CDCMAKE_CUDA_COMPILER=${nvcc.path}`]),
    ],
    { signal: options.signal },
  )
  if (exitCode !== 0 || !required.every((name) => existsSync(join(folder, name)))) {
    throw findingError('build.native', `the native build failed:\n${firstLines(`${stdout}\n${stderr}`, 12)}`, {
      hint: 'run `heddle doctor` to see what the machine lacks',
      cause: stderr,
    })
  }
  await writeFileAtomic(stamp, key)
  return { folder, built: true }
}
