/**
 * Objects of generated source: each file is compiled by itself, or with others as one unit. Objects are cached by all of their inputs: the
 * source, the headers it reaches, the flags and the compiler. A file that does not compile stops no other.
 */
import { setMaxListeners } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import pLimit, { type LimitFunction } from 'p-limit'
import { findingError, HeddleError } from '../errors.js'
import { refuseFullDisk, writing } from '../writing.js'
import { cached } from './cache.js'
import { threadsOf } from './cubin.js'
import { precompiledHeader } from './precompiled.js'
import { firstLines, runTool } from './process.js'
import { type KernelResources, parsePtxas } from './ptxas.js'
import { compileArguments, type Recipe } from './recipe.js'
import { refuseShared } from './shared_memory.js'
import type { KeyedFile } from './sources.js'
import { refuseSpills } from './spills.js'
import { readableNames } from './symbol.js'
import { isOfHeaders, resourcesByFile, type Sharing, unitKey, unitsOf, unitText } from './units.js'

export interface BuildProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True if its object came from the cache. */
  readonly cached: boolean
}

export interface BuiltObject extends KeyedFile {
  /** Path of the object, which the files of a unit share. */
  readonly object: string
  readonly made: boolean
  readonly resources: readonly KernelResources[]
}

export interface CompileOptions {
  readonly cache: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Called if another process is compiling a file. */
  readonly onWait?: ((source: string) => void) | undefined
  /** Maximum number of parallel compilers, or a limit shared by overlapping calls; by default the number of cores. */
  readonly jobs?: number | LimitFunction | undefined
  /** Grouping of files into units, for full builds; by default each file is compiled by itself. */
  readonly together?: Sharing | undefined
  /** Treatment of kernels that spill: an error by default, or only a report. */
  readonly spills?: 'refused' | 'reported' | undefined
}

/**
 * Compiles all files that are not in the cache.
 * @throws finding `build.compile` with every file that the compiler refused and its op, once all others are compiled;
 * finding `build.spill`; environment `cache.*`; the signal's reason
 */
export async function compileFiles(
  recipe: Recipe,
  files: readonly KeyedFile[],
  options: CompileOptions,
): Promise<readonly BuiltObject[]> {
  const { signal, onProgress, jobs = availableParallelism() } = options
  const limit = typeof jobs === 'number' ? pLimit(jobs) : jobs
  // An error that is not a compile error of one file stops the others: their processes end before this function returns.
  const failure = new AbortController()
  const stop = signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
  // Each running compiler listens, and Node warns of more than ten listeners.
  setMaxListeners(0, stop)
  const refused: HeddleError[] = []
  let done = 0
  const compileUnit = async (unit: readonly KeyedFile[]): Promise<readonly BuiltObject[]> => {
    stop.throwIfAborted()
    try {
      const built = await compile(recipe, unit, units.length, { ...options, signal: stop })
      for (const { source, made } of built) {
        done += 1
        onProgress?.({ done, total: files.length, source, cached: !made })
      }
      return built
    } catch (error) {
      const isRefused = error instanceof HeddleError && error.code === 'build.compile'
      // Retries each file by itself, to find the ones that do not compile.
      if (isRefused && unit.length > 1) {
        const single: BuiltObject[] = []
        for (const file of unit) single.push(...(await compileUnit([file])))
        return single
      }
      if (isRefused) refused.push(error)
      else failure.abort(error)
      return []
    }
  }
  const units = options.together === undefined ? files.map((file) => [file]) : unitsOf(recipe, files, options.together)
  const built = (await Promise.all(units.map((unit) => limit(() => compileUnit(unit))))).flat()
  signal?.throwIfAborted()
  if (failure.signal.aborted) throw failure.signal.reason
  refuseAll(refused, files.length)
  const places = new Map(files.map(({ path }, at) => [path, at]))
  const objects = await named(
    built.sort((a, b) => (places.get(a.path) ?? 0) - (places.get(b.path) ?? 0)),
    signal,
  )
  refuseShared(objects)
  if (options.spills !== 'reported') refuseSpills(objects)
  return objects
}

/** Replaces kernel symbols by readable names: all symbols of a build are demangled at once. */
async function named(objects: readonly BuiltObject[], signal: AbortSignal | undefined): Promise<readonly BuiltObject[]> {
  const symbols = objects.map(({ resources }) => resources.map(({ kernel }) => kernel))
  if (symbols.flat().length === 0) return objects
  const names = await readableNames(symbols, signal)
  return objects.map(({ resources, ...object }, at) => ({
    ...object,
    resources: resources.map((each) => ({
      ...each,
      kernel: names[at]?.get(each.kernel) ?? each.kernel,
      ...(isOfHeaders(each.kernel) ? { ofHeaders: true as const } : {}),
    })),
  }))
}

/** Throws one finding for all refused files. */
function refuseAll(refused: readonly HeddleError[], total: number): void {
  const [first] = refused
  if (first === undefined) return
  if (refused.length === 1 && total === 1) throw first
  const messages = refused.map(({ message }) => message).sort()
  const { hint = '' } = first
  throw findingError('build.compile', `${refused.length} of ${total} files do not compile\n${messages.join('\n')}`, {
    hint,
    cause: first.cause,
  })
}

/** Compiles a unit: its files share one object. @param units number of units of this build */
async function compile(
  recipe: Recipe,
  files: readonly KeyedFile[],
  units: number,
  { cache, signal, onWait }: CompileOptions,
): Promise<readonly BuiltObject[]> {
  const [first] = files
  if (first === undefined) return []
  const make = async (folder: string): Promise<void> => {
    const object = join(folder, 'object.o')
    // Files left by a killed compiler are removed with the unfinished entry.
    const scratch = join(folder, 'scratch')
    await writing(scratch, () => mkdir(scratch))
    const args = compileArguments(recipe, await writeUnit(scratch, files), first.headers, object)
    const tool = recipe.compiler.path
    const env = { TMPDIR: scratch }
    const run = (leading: readonly string[]) => runTool(tool, [...leading, ...args], { signal, env, cwd: scratch })
    const { quick, plain } = await precompiledHeader(recipe, files, units, cache)
    const tried = await run(quick)
    // The error must come from the source itself, not from the precompiled header.
    const { exitCode, stderr } = tried.exitCode !== 0 && quick !== plain ? await run(plain) : tried
    if (exitCode !== 0) {
      refuseFullDisk(first.path, stderr)
      const name = first.op === undefined ? '' : `op ${first.op}: `
      throw findingError('build.compile', `${name}${basename(tool)} refused ${first.path}:\n${firstLines(stderr)}`, {
        hint: 'the source is generated: correct its op or its device header',
        cause: stderr,
      })
    }
    await rm(scratch, { recursive: true, force: true })
    await writing(folder, () => writeFile(join(folder, 'stderr.txt'), stderr))
  }
  const { folder, made } = await cached(join(cache, 'objects'), unitKey(files), make, {
    signal,
    onWait: () => onWait?.(first.source),
  })
  const reported = parsePtxas(await readFile(join(folder, 'stderr.txt'), 'utf8'))
  const threads = recipe.isCode ? threadsOf(await readFile(join(folder, 'object.o'))) : new Map<string, number>()
  const resources = resourcesByFile(
    files,
    reported.map((each) => ({ ...each, threads: threads.get(each.kernel) })),
  )
  return files.map((file, at) => ({ ...file, object: join(folder, 'object.o'), made, resources: resources[at] ?? [] }))
}

/**
 * Writes the source of a unit and returns its name, which is the same in every folder: compilers put it into the object. It is compiled in this
 * folder and not in its own: a compiler would prefer a header next to the source to that of the package.
 */
async function writeUnit(folder: string, files: readonly KeyedFile[]): Promise<string> {
  const name = basename(files[0]?.path ?? '')
  await writing(folder, () => writeFile(join(folder, name), unitText(files)))
  return name
}
