/**
 * Kernels on demand: compiles the requested kernels that are not in the cache, and links them into a small library. Libraries are cached by their
 * objects, so a program that requests the same kernels again loads the same file. If the last full build has the same objects, its library is
 * used.
 */
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cacheFolder } from '../cache_folder.js'
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { registryText } from '../emit/manifest/registry.js'
import { findingError, HeddleError } from '../errors.js'
import { isOwn } from '../own_text.js'
import { refuseFullDisk, writing } from '../writing.js'
import { cached } from './cache.js'
import { canonicalJson, fileDigest, sha256 } from './hash.js'
import { installation } from './installation.js'
import { type BuiltObject, type CompileOptions, compileFiles } from './objects.js'
import { packageRoot, type Target } from './paths.js'
import { platformLibrary } from './platform_package.js'
import { firstLines, runTool } from './process.js'
import { linkArguments, type Recipe, type RecipeOptions, recipeFor } from './recipe.js'
import { type BuildReport, readBuildReport } from './report.js'
import { keyFiles, type SourceFile } from './sources.js'
import { cacheLimit, isSweepDue, sweep } from './sweep.js'

/** A kernel and the folder of generated source that holds its file. */
export interface PlacedKernel {
  readonly entry: KernelEntry
  readonly folder: string
  /** True if the user accepts its source as is. */
  readonly asItLies?: boolean | undefined
}

export interface DemandOptions extends Omit<CompileOptions, 'cache'> {
  readonly root: string
  readonly target: Target
  /** GPU architecture to compile for, such as `90`; all of them by default. */
  readonly architecture?: string | undefined
  /** Adds line information of CUDA source for profilers and checkers. */
  readonly lineInfo?: boolean | undefined
  /** Optimisation level of source for the CPU device. */
  readonly optimise?: RecipeOptions['optimise']
  /** Compiles the kernels even if the last full build has them, for their objects. */
  readonly alone?: boolean | undefined
}

export interface DemandedLibrary {
  readonly library: string
  /** Objects, of which `compiled` were compiled by this call; empty if the last full build is used. */
  readonly objects: readonly BuiltObject[]
  readonly compiled: number
}

const libraryFile = 'libheddle_kernels.so'

/**
 * Returns a library with the kernels, which may contain others.
 * @throws environment `toolchain.*` without a compiler; finding `build.compile`, `build.spill`, `build.link`; environment `cache.*`
 */
export async function demandKernels(kernels: readonly PlacedKernel[], options: DemandOptions): Promise<DemandedLibrary> {
  const files = sourceFiles(kernels)
  const { root, target } = options
  const built = options.alone === true ? undefined : await wholeBuild(root, target)
  if (built !== undefined && (await serves(built, files, kernels))) return { library: built.path, objects: [], compiled: 0 }
  const packed = options.alone === true ? undefined : await platformLibrary(target, kernels)
  if (packed !== undefined) return { library: packed, objects: [], compiled: 0 }
  const recipe = await recipeFor(target, packageRoot(), options)
  const cache = cacheFolder()
  const objects = await compileFiles(recipe, await keyFiles(recipe, files), { ...options, cache })
  const { library, made } = await linkSet(recipe, objects, kernels, cache, options.signal)
  const compiled = objects.filter((object) => object.made).length
  if (made || compiled > 0) await sweepCache(cache)
  return { library, objects, compiled }
}

/** Distinct files, sorted by name. */
function sourceFiles(kernels: readonly PlacedKernel[]): SourceFile[] {
  const files = new Map(
    kernels.map(({ entry: { file, op }, folder, asItLies }) => [
      join(folder, file),
      { source: file, path: join(folder, file), op, asItLies },
    ]),
  )
  return [...files.values()].sort((a, b) => (a.source < b.source ? -1 : 1))
}

/** Removes leftovers of killed builds and least recently used entries, at most once an hour. @throws usage `cache.limit` */
export async function sweepCache(cache: string = cacheFolder()): Promise<void> {
  const limit = cacheLimit()
  if (!(await isSweepDue(cache))) return
  const folders = ['objects', 'headers', 'libraries', 'native'].map((name) => join(cache, name))
  await sweep(folders, limit)
}

interface WholeBuild {
  readonly path: string
  readonly report: BuildReport
}

/** Library of the last full build, if its file is unchanged since this user's build. */
async function wholeBuild(root: string, target: Target): Promise<WholeBuild | undefined> {
  const { library, report: reportPath } = installation(root)
  const report = await readBuildReport(reportPath(target)).catch(() => undefined)
  if (report === undefined || !isOwn(report.library.digest)) return undefined
  return (await fileDigest(library(target))) === report.library.digest ? { path: library(target), report } : undefined
}

/** True if the last full build has these kernels with their current sources and headers. */
export async function isServedWhole(root: string, target: Target, kernels: readonly PlacedKernel[]): Promise<boolean> {
  const built = await wholeBuild(root, target)
  return built !== undefined && serves(built, sourceFiles(kernels), kernels)
}

/**
 * True if a full build has the current version of files: by the keys of their objects, which need the compiler's version; on a machine without
 * a compiler, and of a build that was packed for other machines, by the digests of the kernels' sources.
 */
async function serves({ report }: WholeBuild, files: readonly SourceFile[], kernels: readonly PlacedKernel[]): Promise<boolean> {
  const known = new Map(report.objects.map(({ source, key }) => [source, key]))
  if (!files.every(({ source }) => known.has(source))) return false
  const { target, architecture, lineInfo, travels } = report
  const digests = new Map(report.digests?.map(({ key, digest }) => [key, digest]))
  const hasSources = (): boolean => kernels.every(({ entry }) => digests.get(entry.key) === entry.digest)
  if (travels === true) return hasSources()
  try {
    const recipe = await recipeFor(target, packageRoot(), { architecture, lineInfo })
    return (await keyFiles(recipe, files)).every(({ source, key }) => known.get(source) === key)
  } catch (error) {
    if (!(error instanceof HeddleError && error.code.startsWith('toolchain.'))) throw error
    return hasSources()
  }
}

async function linkSet(
  recipe: Recipe,
  objects: readonly BuiltObject[],
  kernels: readonly PlacedKernel[],
  cache: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly library: string; readonly made: boolean }> {
  const entries = kernels.map(({ entry }) => entry).sort((a, b) => (a.key < b.key ? -1 : 1))
  const registry = registryText(entries)
  const { target, compiler, linkFlags } = recipe
  const parts = { objects: objects.map(({ key }) => key), registry, flags: linkFlags, target, compiler: compiler.version }
  const make = async (folder: string): Promise<void> => {
    const source = join(folder, 'registry.cpp')
    await writing(source, () => writeFile(source, registry))
    const inputs = [source, ...objects.map(({ object }) => object)]
    const flags = [...recipe.compileFlags([]), ...recipe.include.flatMap((path) => ['-I', path])]
    const args = [...flags, ...linkArguments(recipe, inputs, join(folder, libraryFile))]
    const { exitCode, stderr } = await runTool(compiler.path, args, { signal, env: { TMPDIR: folder } })
    if (exitCode === 0) return
    refuseFullDisk(folder, stderr)
    throw findingError(
      'build.link',
      `${basename(compiler.path)} could not link ${entries.length} kernels:\n${firstLines(stderr)}`,
      {
        cause: stderr,
      },
    )
  }
  const { folder, made } = await cached(join(cache, 'libraries'), sha256(canonicalJson(parts)), make, { signal })
  return { library: join(folder, libraryFile), made }
}
