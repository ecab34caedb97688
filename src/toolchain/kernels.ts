/**
 * Full build of a target's kernel library: compiles each generated file (or finds its object in the cache), links, checks the report of ptxas,
 * and writes `build.json`. Runs after `gen`, for `heddle build`; programs that need a few kernels use demand.ts.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { cacheFolder } from '../cache_folder.js'
import { usageError } from '../errors.js'
import { isOwn } from '../own_text.js'
import { isServedWhole, sweepCache } from './demand.js'
import { sha256 } from './hash.js'
import { generatedFolder, installation } from './installation.js'
import { link } from './link.js'
import { readManifestOf } from './manifests.js'
import { type BuildProgress, type BuiltObject, compileFiles } from './objects.js'
import { outputs, packageRoot, type Target } from './paths.js'
import { compileArguments, type Recipe, type RecipeOptions, recipeFor } from './recipe.js'
import { type BuildReport, readBuildReport } from './report.js'
import { type KernelSize, sizesOf } from './sizes.js'
import { keyFiles, type SourceFile } from './sources.js'

export interface BuildOptions {
  readonly target: Target
  /** The project root: holds `generated/`, receives `.heddle/`. */
  readonly root: string
  /** Defaults to the project's `generated/`, else the shipped one. */
  readonly generated?: string
  /** Defaults to `<root>/.heddle/<target>`. */
  readonly outDir?: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: (progress: BuildProgress) => void
  /** Maximum number of parallel compilers; defaults to the number of cores. */
  readonly jobs?: number | undefined
  /** GPU architecture to compile for, such as `90`; defaults to all of them. */
  readonly architecture?: string | undefined
  /** Adds line information of CUDA source for profilers and checkers. */
  readonly lineInfo?: boolean
  /** Optimisation level of source for the CPU device: lower for kernels that only run on small cases. */
  readonly optimise?: RecipeOptions['optimise']
  /** Reads the sizes of the objects, too. */
  readonly sizes?: boolean | undefined
}

export interface BuildResult {
  readonly report: BuildReport
  readonly library: string
  readonly compiled: number
  readonly linked: boolean
  /** Sizes of the compiled kernels; empty unless requested. */
  readonly sizes: readonly KernelSize[]
}

/**
 * Compiles and links the kernels of `generated/` for one target.
 * @throws usage `build.generated` without a manifest; environment `toolchain.*` without a compiler, `cache.*` if the cache cannot be written;
 * finding `build.compile` with every file that fails, once all others are compiled, `build.link`, `build.spill`; the signal's reason when
 * cancelled
 */
export async function buildKernels(options: BuildOptions): Promise<BuildResult> {
  const { target, root, signal, jobs, onProgress, architecture, lineInfo = false } = options
  const generated = options.generated ?? generatedFolder(root)
  const outDir = options.outDir ?? outputs(root).target(target)
  const { files, digest, digests } = await readSources(generated)
  const recipe = await recipeFor(target, packageRoot(), options)
  const cache = cacheFolder()
  const objects = await compileFiles(recipe, await keyFiles(recipe, files), { cache, signal, onProgress, jobs, together: 'op' })

  const reportPath = join(outDir, 'build.json')
  const linked = await link(recipe, objects, outDir, await readBuildReport(reportPath), signal)
  const report: BuildReport = {
    version: 1,
    target,
    compiler: recipe.compiler,
    manifest: digest,
    digests,
    ...(architecture === undefined ? {} : { architecture }),
    lineInfo,
    key: linked.key,
    library: linked.library,
    objects: objects.map(({ source, key }) => ({ source, key })),
    kernels: objects.flatMap(({ source, resources }) => resources.map((kernel) => ({ ...kernel, source }))),
  }
  await writeFileAtomic(reportPath, `${JSON.stringify(report, null, 2)}\n`)
  await writeFileAtomic(join(outDir, 'compile_commands.json'), compileCommands(recipe, generated, objects))
  const compiled = objects.filter(({ made }) => made).length
  if (compiled > 0) await sweepCache(cache)
  const sizes = options.sizes === true ? await sizesOf(objects) : []
  return { report, library: join(outDir, linked.library.file), compiled, linked: linked.made, sizes }
}

/** Files to compile: each kernel's source once, and the registry. @throws usage `build.generated` without a manifest, `generated.foreign` */
export async function readSources(generated: string) {
  const path = join(generated, 'manifest.json')
  const text = await readFile(path).catch(() => undefined)
  if (text === undefined) throw usageError('build.generated', `${path} is missing`, { hint: 'run `heddle gen` first' })
  const { kernels } = await readManifestOf(generated)
  const ops = new Map<string, string | undefined>(kernels.map(({ file, op }) => [file, op]))
  ops.set('registry.cpp', undefined)
  const files = [...ops].map(([source, op]): SourceFile => ({ source, path: join(generated, source), op }))
  return {
    files: files.sort((a, b) => (a.source < b.source ? -1 : 1)),
    digest: sha256(text),
    digests: kernels.map(({ key, digest }) => ({ key, digest })),
  }
}

/** Compilation database for editors, with the command of each generated file. */
function compileCommands(recipe: Recipe, generated: string, objects: readonly BuiltObject[]): string {
  const commands = objects.map(({ source, headers, object }) => ({
    directory: generated,
    file: join(generated, source),
    arguments: [recipe.compiler.path, ...compileArguments(recipe, join(generated, source), headers, object)],
  }))
  return `${JSON.stringify(commands, null, 2)}\n`
}

/** True if the last full build of `target` has the current generated sources and the headers that they reach. */
export async function isBuiltOfTexts(root: string, target: Target): Promise<boolean> {
  if ((await libraryState(root, target)) !== 'current') return false
  const { kernels } = await readManifestOf(generatedFolder(root))
  return isServedWhole(
    root,
    target,
    kernels.map((entry) => ({ entry, folder: generatedFolder(root) })),
  )
}

/** State of the library of `target`: `current` if the last build used the current manifest and the library is unchanged since. */
export async function libraryState(root: string, target: Target): Promise<'missing' | 'stale' | 'current'> {
  const { library, report, portable, generated } = installation(root)
  const last = await readBuildReport(report(target)).catch(() => undefined)
  const built = await readFile(library(target)).catch(() => undefined)
  if (last === undefined || built === undefined) return 'missing'
  const folder = portable ? generated[0] : generatedFolder(root)
  const manifest = await readFile(join(folder ?? root, 'manifest.json')).catch(() => undefined)
  const matches = manifest !== undefined && sha256(manifest) === last.manifest && sha256(built) === last.library.digest
  // A library that was not linked by a build of this user is never loaded.
  return matches && (portable || isOwn(last.library.digest)) ? 'current' : 'stale'
}
