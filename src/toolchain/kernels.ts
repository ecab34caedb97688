/**
 * Builds the kernel library of a target: compiles each generated file (or finds its object in the cache), links, checks what
 * ptxas reported, and writes `build.json`. Runs after `gen`; `heddle build` is this and nothing else.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import pLimit from 'p-limit'
import writeFileAtomic from 'write-file-atomic'
import { parseManifest } from '../emit/manifest.js'
import { findingError, usageError } from '../errors.js'
import { cached } from './cache.js'
import { canonicalJson, sha256 } from './hash.js'
import { type HeaderCache, headerDigests } from './includes.js'
import { installation } from './installation.js'
import { link } from './link.js'
import { outputs, packageRoot, type Target } from './paths.js'
import { firstLines, runTool } from './process.js'
import { type KernelResources, parsePtxas } from './ptxas.js'
import { compileArguments, type Recipe, recipeFor } from './recipe.js'
import { type BuildReport, readBuildReport } from './report.js'

export interface BuildProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True when its object came from the cache. */
  readonly cached: boolean
}

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
  /** Compilers at a time; defaults to the number of cores. */
  readonly jobs?: number
  /** The one GPU architecture to compile for, such as `90`; defaults to all of them. */
  readonly architecture?: string
  /** Lets profilers and checkers name lines of CUDA text. */
  readonly lineInfo?: boolean
}

export interface BuildResult {
  readonly report: BuildReport
  readonly library: string
  readonly compiled: number
  readonly linked: boolean
}

interface BuiltObject {
  readonly source: string
  readonly key: string
  readonly headers: readonly string[]
  readonly object: string
  readonly made: boolean
  readonly resources: readonly KernelResources[]
}

/**
 * Compiles and links the kernels of `generated/` for one target.
 * @throws usage `build.generated` without a manifest; environment `toolchain.*` without a compiler; finding `build.compile`,
 * `build.link`, `build.spill` when a file fails; the signal's reason when cancelled
 */
export async function buildKernels(options: BuildOptions): Promise<BuildResult> {
  const { target, root, signal } = options
  const generated = options.generated ?? installation(root).generated
  const outDir = options.outDir ?? outputs(root).target(target)
  const { sources, digest } = await readSources(generated)
  const recipe = await recipeFor(target, packageRoot(), options)
  const headers: HeaderCache = new Map()
  const limit = pLimit(options.jobs ?? availableParallelism())
  // The first failure stops the others: their children are ended before this function returns.
  const failure = new AbortController()
  const stop = signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
  let done = 0
  const results = await Promise.allSettled(
    sources.map((source) =>
      limit(async () => {
        try {
          const built = await compile({ recipe, generated, source, cache: outputs(root).cache, headers, signal: stop })
          done += 1
          options.onProgress?.({ done, total: sources.length, source, cached: !built.made })
          return built
        } catch (error) {
          failure.abort(error)
          throw error
        }
      }),
    ),
  )
  signal?.throwIfAborted()
  if (failure.signal.aborted) throw failure.signal.reason
  const objects = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  refuseSpills(objects)

  const reportPath = join(outDir, 'build.json')
  const linked = await link(recipe, objects, outDir, await readBuildReport(reportPath), stop)
  const report: BuildReport = {
    version: 1,
    target,
    compiler: recipe.compiler,
    manifest: digest,
    key: linked.key,
    library: linked.library,
    objects: objects.map(({ source, key }) => ({ source, key })),
    kernels: objects.flatMap(({ source, resources }) => resources.map((kernel) => ({ ...kernel, source }))),
  }
  await writeFileAtomic(reportPath, `${JSON.stringify(report, null, 2)}\n`)
  await writeFileAtomic(join(outDir, 'compile_commands.json'), compileCommands(recipe, generated, objects))
  return {
    report,
    library: join(outDir, linked.library.file),
    compiled: objects.filter(({ made }) => made).length,
    linked: linked.made,
  }
}

/** The files to compile: each kernel's text once, and the registry. */
async function readSources(generated: string): Promise<{ sources: string[]; digest: string }> {
  const path = join(generated, 'manifest.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) throw usageError('build.generated', `${path} is missing`, { hint: 'run `heddle gen` first' })
  const manifest = parseManifest(text, path, 'build.generated')
  return { sources: [...new Set(manifest.kernels.map(({ file }) => file)), 'registry.cpp'].sort(), digest: sha256(text) }
}

interface CompileRequest {
  readonly recipe: Recipe
  readonly generated: string
  readonly source: string
  readonly cache: string
  readonly headers: HeaderCache
  readonly signal: AbortSignal
}

async function compile({ recipe, generated, source, cache, headers, signal }: CompileRequest): Promise<BuiltObject> {
  signal.throwIfAborted()
  const path = join(generated, source)
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) {
    throw usageError('build.generated', `${path} is named by the manifest but missing`, { hint: 'run `heddle gen` again' })
  }
  const digests = await headerDigests(text, recipe.include, headers)
  const names = Object.keys(digests)
  const key = sha256(
    canonicalJson({
      text,
      source,
      headers: digests,
      flags: recipe.compileFlags(names),
      target: recipe.target,
      compiler: recipe.compiler.version,
    }),
  )
  const { folder, made } = await cached(cache, key, async (temporary) => {
    const object = join(temporary, 'object.o')
    const { exitCode, stderr } = await runTool(recipe.compiler.path, compileArguments(recipe, path, names, object), { signal })
    if (exitCode !== 0) {
      throw findingError('build.compile', `${basename(recipe.compiler.path)} refused ${path}:\n${firstLines(stderr)}`, {
        hint: 'the text is generated: correct the op or the device header it comes from',
        cause: stderr,
      })
    }
    await writeFile(join(temporary, 'stderr.txt'), stderr)
  })
  const resources = parsePtxas(await readFile(join(folder, 'stderr.txt'), 'utf8'))
  return { source, key, headers: names, object: join(folder, 'object.o'), made, resources }
}

/**
 * Bytes a thread may spill, by the loop it runs. The masks and scores of an author may need a few registers more than the pipelined loop of
 * attention leaves; a window that spilled 28 bytes was measured faster with it (0.085 ms at 2,048 keys on an H200) than any loop without.
 */
const spillAllowed: ReadonlyMap<string, number> = new Map([['attention_pipelined', 64]])

/** A spilling kernel reads and writes memory its schedule did not plan for, so a build with one is refused. */
function refuseSpills(objects: readonly BuiltObject[]): void {
  const spills = objects.flatMap(({ source, resources }) =>
    resources
      .filter(
        ({ kernel, spillStoreBytes, spillLoadBytes }) =>
          Math.max(spillStoreBytes, spillLoadBytes) > (spillAllowed.get(kernel) ?? 0),
      )
      .map(
        ({ kernel, arch, registers, spillStoreBytes, spillLoadBytes }) =>
          `${kernel} (${source}) spills on ${arch}: ${spillStoreBytes} bytes stored, ${spillLoadBytes} loaded, ${registers} registers`,
      ),
  )
  if (spills.length === 0) return
  throw findingError('build.spill', spills.join('\n'), {
    hint: 'give the kernel a schedule that keeps fewer values in registers',
  })
}

/** For editors: how each generated file is compiled for this target. */
function compileCommands(recipe: Recipe, generated: string, objects: readonly BuiltObject[]): string {
  const commands = objects.map(({ source, headers, object }) => ({
    directory: generated,
    file: join(generated, source),
    arguments: [recipe.compiler.path, ...compileArguments(recipe, join(generated, source), headers, object)],
  }))
  return `${JSON.stringify(commands, null, 2)}\n`
}

/** Whether the last build of `target` used the manifest and left the library as they are now. */
export async function libraryState(root: string, target: Target): Promise<'missing' | 'stale' | 'current'> {
  const { generated, library, report } = installation(root)
  const last = await readBuildReport(report(target)).catch(() => undefined)
  const built = await readFile(library(target)).catch(() => undefined)
  if (last === undefined || built === undefined) return 'missing'
  const manifest = await readFile(join(generated, 'manifest.json')).catch(() => undefined)
  const matches = manifest !== undefined && sha256(manifest) === last.manifest && sha256(built) === last.library.digest
  return matches ? 'current' : 'stale'
}
