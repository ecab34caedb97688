/**
 * Objects of generated text: each file is compiled by itself, or with others as one unit, and its object is found in the cache by everything
 * that went into it: the text, the headers it reaches, the flags and the compiler. A file that does not compile stops no other.
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
import type { KeyedFile } from './sources.js'
import { refuseSpills } from './spills.js'
import { readableNames } from './symbol.js'
import { resourcesByFile, type Sharing, unitKey, unitsOf, unitText } from './units.js'

export interface BuildProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True when its object came from the cache. */
  readonly cached: boolean
}

export interface BuiltObject extends KeyedFile {
  /** Files of one unit have one object. */
  readonly object: string
  readonly made: boolean
  readonly resources: readonly KernelResources[]
}

export interface CompileOptions {
  readonly cache: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Called when another process compiles a file already. */
  readonly onWait?: ((source: string) => void) | undefined
  /** Compilers at a time, or the turns that calls side by side share; as many as there are cores by default. */
  readonly jobs?: number | LimitFunction | undefined
  /** Whose texts are compiled together, for builds of all of them; each by itself by default. */
  readonly together?: Sharing | undefined
  /** What becomes of kernels that spill: an error, unless somebody wants to look at them. */
  readonly spills?: 'refused' | 'reported' | undefined
}

/**
 * The objects of all files, compiled where the cache has none.
 * @throws finding `build.compile` with every file that the compiler refused and the op it is of, once all others are compiled;
 * finding `build.spill`; environment `cache.*`; the signal's reason
 */
export async function compileFiles(
  recipe: Recipe,
  files: readonly KeyedFile[],
  options: CompileOptions,
): Promise<readonly BuiltObject[]> {
  const { signal, onProgress, jobs = availableParallelism() } = options
  const limit = typeof jobs === 'number' ? pLimit(jobs) : jobs
  // What is no fault of one file stops the others: their children are ended before this function returns.
  const failure = new AbortController()
  const stop = signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
  // Each compiler that runs listens, and Node warns of more than ten who do.
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
      // Each file by itself then, which tells the wrong ones from the others.
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
  if (options.spills !== 'reported') refuseSpills(objects)
  return objects
}

/** Kernels by names that a reader knows: all symbols of a build are read at once. */
async function named(objects: readonly BuiltObject[], signal: AbortSignal | undefined): Promise<readonly BuiltObject[]> {
  const symbols = objects.map(({ resources }) => resources.map(({ kernel }) => kernel))
  if (symbols.flat().length === 0) return objects
  const names = await readableNames(symbols, signal)
  return objects.map(({ resources, ...object }, at) => ({
    ...object,
    resources: resources.map((each) => ({ ...each, kernel: names[at]?.get(each.kernel) ?? each.kernel })),
  }))
}

/** One finding for all that was refused. */
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

/** The objects of a unit's files, which is one object. @param units how many are compiled besides */
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
    // What the compiler leaves when it is killed goes with the unfinished entry.
    const scratch = join(folder, 'scratch')
    await writing(scratch, () => mkdir(scratch))
    const args = compileArguments(recipe, await writeUnit(scratch, files), first.headers, object)
    const tool = recipe.compiler.path
    const env = { TMPDIR: scratch }
    const run = (ahead: readonly string[]) => runTool(tool, [...ahead, ...args], { signal, env, cwd: scratch })
    const { quick, plain } = await precompiledHeader(recipe, files, units, cache)
    const tried = await run(quick)
    // What is refused is refused by the text itself, not by what was to make it quicker.
    const { exitCode, stderr } = tried.exitCode !== 0 && quick !== plain ? await run(plain) : tried
    if (exitCode !== 0) {
      refuseFullDisk(first.path, stderr)
      const name = first.op === undefined ? '' : `op ${first.op}: `
      throw findingError('build.compile', `${name}${basename(tool)} refused ${first.path}:\n${firstLines(stderr)}`, {
        hint: 'the text is generated: correct the op or the device header it comes from',
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
 * Writes the text of a unit and returns its name, which is the same in every folder: compilers put it into the object. It is compiled there, and
 * not where it was read: a compiler takes a header that lies beside a text for one of the package.
 */
async function writeUnit(folder: string, files: readonly KeyedFile[]): Promise<string> {
  const name = basename(files[0]?.path ?? '')
  await writing(folder, () => writeFile(join(folder, name), unitText(files)))
  return name
}
