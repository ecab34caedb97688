/**
 * Builds the addon and the device plugins with cmake-js, or without CMake by plain calls of the compiler, in the user's cache, so that an installed package stays untouched and no file of a
 * project is loaded. A copy is cached by content, for the next package. Skipped if a hash of the sources and tools shows that the last build is
 * current.
 */
import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from '../cache_folder.js'
import { environmentError, findingError } from '../errors.js'
import { refuseFullDisk, writing } from '../writing.js'
import { cached } from './cache.js'
import { type Compiler, findCmake, findNvcc, requireCxx } from './compilers.js'
import { sweepCache } from './demand.js'
import { canonicalJson, hashTree, sha256 } from './hash.js'
import { locked } from './lock.js'
import { compilePlain } from './native_plain.js'
import { readStamp, writeStamp } from './native_stamp.js'
import { nativePlace, packageRoot } from './paths.js'
import { hasCudaDevice, nativeHome } from './platform_package.js'
import { firstLines, runTool, type ToolResult } from './process.js'
import { hostRuntime } from './recipe.js'

export interface NativeResult {
  /** Folder of heddle.node, libheddle_simt.so and, if requested and possible, libheddle_cuda.so. */
  readonly folder: string
  /** True if it was compiled by this call. */
  readonly built: boolean
}

export interface NativeOptions {
  readonly signal?: AbortSignal | undefined
  /** Builds the CUDA plugin if nvcc is found; by default if the machine has a CUDA device. */
  readonly cuda?: boolean | undefined
  /** Called before compiling or waiting. */
  readonly onStart?: ((what: string) => void) | undefined
}

const required = ['heddle.node', 'libheddle_simt.so']
const cudaPlugin = 'libheddle_cuda.so'

/**
 * Builds native/ of the package into its folder of the user's cache. Calls from several processes wait for each other.
 * @throws environment `toolchain.cmake`, `toolchain.cxx`, `cache.*`; finding `build.native` with the first lines of the failure
 */
export async function buildNative({ signal, cuda = hasCudaDevice(), onStart }: NativeOptions = {}): Promise<NativeResult> {
  const source = nativeSources()
  const [cmake, cxx, nvcc] = await Promise.all([findCmake(), requireCxx(), cuda ? findNvcc() : undefined])
  if (cmake === undefined && nvcc !== undefined) {
    throw environmentError('toolchain.cmake', 'cmake was not found on PATH: the CUDA plugin is built with it', {
      hint: 'install CMake 3.22 or later; the CPU device, simt, needs none',
    })
  }
  const sources = await sourcesKey(source)
  const keyWith = (compiler: Compiler | undefined): string =>
    sha256(
      canonicalJson({
        sources,
        tools: [cmake?.version ?? 'plain', cxx.version, compiler?.version ?? 'none'],
        flags: hostRuntime,
      }),
    )
  const stamp = { sources, key: keyWith(nvcc), cuda: nvcc !== undefined }
  const { folder: out, release: folder } = nativePlace()
  const onWait = () => onStart?.('waiting for another process that builds the addon')
  return locked(`${out}.building`, { signal, onWait }, async (lockSignal) => {
    const last = await readStamp(out)
    // A build with the CUDA plugin satisfies a request without it.
    const withPlugin = last?.cuda === true ? keyWith(nvcc ?? (await findNvcc())) : stamp.key
    if (isComplete(folder) && last !== undefined && [stamp.key, withPlugin].includes(last.key)) return { folder, built: false }
    onStart?.('building the addon and the device plugins')
    const entry = await cached(
      join(cacheFolder(), 'native'),
      stamp.key,
      async (temporary) => {
        await compile(source, out, { cmake, cxx, nvcc, signal: lockSignal })
        await copyAll(folder, temporary)
      },
      { signal: lockSignal, onWait },
    )
    if (!entry.made) await copyAll(entry.folder, folder)
    if (nvcc === undefined) await rm(join(folder, cudaPlugin), { force: true })
    await writeStamp(out, stamp, [...required, cudaPlugin])
    if (entry.made) await sweepCache()
    return { folder, built: entry.made }
  })
}

/**
 * Ensures the addon of this package: builds it if it is missing or if the package's sources have changed. Otherwise, and with a platform
 * package, no tool is needed.
 * @throws like `buildNative`
 */
export async function ensureNative(options: NativeOptions = {}): Promise<NativeResult> {
  const { folder: out, release: folder } = nativePlace()
  const home = nativeHome()
  if (home !== folder) return { folder: home, built: false }
  const last = await readStamp(out)
  const isEnough = last !== undefined && (last.cuda || options.cuda !== true)
  if (isEnough && isComplete(folder) && last.sources === (await sourcesKey(nativeSources()))) return { folder, built: false }
  return buildNative(options)
}

function nativeSources(): string {
  const source = join(packageRoot(), 'native')
  if (existsSync(join(source, 'CMakeLists.txt'))) return source
  throw environmentError('build.native', `${source} has no sources to build from`, {
    hint: 'the portable bundle is already built; install the package to build',
  })
}

/** Hash of the sources compiled here, without device code, which belongs to kernels. */
const sourcesKey = async (source: string): Promise<string> =>
  sha256(canonicalJson(await hashTree(source, ['build', 'device', 'export'])))

const isComplete = (folder: string): boolean => required.every((name) => existsSync(join(folder, name)))

/** Copies the outputs of a build to another folder, each file by a rename, since a process may have the old one open. */
async function copyAll(from: string, to: string): Promise<void> {
  await writing(to, async () => {
    await mkdir(to, { recursive: true })
    for (const name of [...required, cudaPlugin]) {
      if (!existsSync(join(from, name))) continue
      const temporary = join(to, `.${name}.${process.pid}`)
      try {
        await copyFile(join(from, name), temporary)
        await rename(temporary, join(to, name))
      } finally {
        await rm(temporary, { force: true })
      }
    }
  })
}

interface Tools {
  readonly cmake: Compiler | undefined
  readonly cxx: Compiler
  readonly nvcc: Compiler | undefined
  readonly signal: AbortSignal | undefined
}

async function compile(source: string, out: string, { cmake, cxx, nvcc, signal }: Tools): Promise<void> {
  await writing(out, () => mkdir(join(out, 'Release'), { recursive: true }))
  // A plugin of an earlier build is not part of this one.
  await rm(join(out, 'Release', cudaPlugin), { force: true })
  const failed =
    cmake === undefined
      ? await compilePlain(source, out, { cxx: cxx.path, signal })
      : await runCmake(source, out, { cxx, nvcc, signal })
  if (failed === undefined && isComplete(join(out, 'Release'))) return
  const { stdout = '', stderr = '' } = failed ?? {}
  refuseFullDisk(out, `${stdout}\n${stderr}`)
  throw findingError('build.native', `the native build failed:\n${firstLines(`${stdout}\n${stderr}`, 12)}`, {
    hint: 'run `heddle doctor` to see what the machine lacks',
    cause: stderr,
  })
}

/** Returns the output of cmake-js if it failed. */
async function runCmake(
  source: string,
  out: string,
  { cxx, nvcc, signal }: Omit<Tools, 'cmake'>,
): Promise<ToolResult | undefined> {
  const driver = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js')
  const args = [
    ...[driver, 'compile', '-d', source, '--out', out],
    ...['--parallel', String(availableParallelism())],
    `--CDCMAKE_CXX_COMPILER=${cxx.path}`,
    `--CDCMAKE_SHARED_LINKER_FLAGS=${hostRuntime.join(' ')}`,
    ...(nvcc === undefined ? ['--CDHEDDLE_CUDA=OFF'] : ['--CDHEDDLE_CUDA=ON', `--CDCMAKE_CUDA_COMPILER=${nvcc.path}`]),
  ]
  // cmake-js configures only without a cache, and would reuse the compiler and the flags of an earlier build.
  await rm(join(out, 'CMakeCache.txt'), { force: true })
  const result = await runTool(process.execPath, args, { signal })
  return result.exitCode === 0 && isComplete(join(out, 'Release')) ? undefined : result
}
